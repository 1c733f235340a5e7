"""Configurations of parts, and the fragments that they share, both with all their revisions."""
