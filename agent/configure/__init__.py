"""Tasks that bring the operating system into the state of the settings, and send its journal to the cloud."""
