"""What models of several kinds have in common."""
