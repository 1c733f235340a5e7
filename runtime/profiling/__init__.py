"""Looking into the running process: where its time and memory go, what its tasks wait for."""
