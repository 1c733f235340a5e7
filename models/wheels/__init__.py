"""Bases on wheels, and where they are."""
