"""A simulated vision service, which sees the same object in every picture."""
