"""A simulated ML model, which detects the same object in every picture."""
