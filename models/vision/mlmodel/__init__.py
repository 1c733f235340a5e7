"""Vision service `mlmodel`: an ML model used as a detector or classifier of pictures."""
