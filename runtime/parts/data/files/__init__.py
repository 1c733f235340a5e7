"""Capture files: writing, reading and recovering readings in the published format."""
