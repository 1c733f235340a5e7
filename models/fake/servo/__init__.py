"""A simulated servo."""
