"""Training jobs: their rows and events, the queue, and the pictures of their datasets."""
