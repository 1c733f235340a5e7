"""Attributes that models of several chips have in common."""
