"""Simulated motion: shafts and encoder tracks as functions of time."""
