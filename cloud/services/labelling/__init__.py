"""Calls of the labelling pages."""
