"""What the steps of an update do, and the task that carries them out."""
