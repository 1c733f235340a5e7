"""Training of models: the published calls, and the queue that runs the jobs."""
