"""Simulated components that measure."""
