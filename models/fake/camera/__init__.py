"""A simulated camera above the simulated world."""
