"""Server port and the services that every server provides."""
