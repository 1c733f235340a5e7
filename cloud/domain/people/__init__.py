"""People who hold keys, and invitations."""
