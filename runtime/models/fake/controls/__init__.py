"""Simulated components with inputs and outputs."""
