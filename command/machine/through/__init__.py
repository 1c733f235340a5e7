"""Connections to machines of a cloud."""
