"""What the models in `chips` have in common."""
