"""What models of several chips have in common."""
