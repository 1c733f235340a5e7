"""What the models in `vision` have in common."""
