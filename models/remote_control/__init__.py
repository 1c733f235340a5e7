"""Drives a base with an input controller."""
