"""A simulated generic service."""
