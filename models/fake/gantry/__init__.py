"""A simulated gantry."""
