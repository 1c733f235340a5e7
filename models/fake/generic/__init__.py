"""A simulated generic component."""
