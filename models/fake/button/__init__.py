"""A simulated push button."""
