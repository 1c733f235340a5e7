"""What the models in `fake` have in common."""
