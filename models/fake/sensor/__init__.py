"""A simulated sensor with constant readings and simulated quantities."""
