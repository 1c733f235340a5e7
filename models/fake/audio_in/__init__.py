"""A simulated microphone that records a tone."""
