"""What the models in `devices` have in common."""
