"""A simulated switch."""
