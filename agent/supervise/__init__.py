"""Supervision of machine-server: starting, watching, ending it, and what it exited with."""
