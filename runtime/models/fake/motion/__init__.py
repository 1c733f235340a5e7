"""Simulated components that move."""
