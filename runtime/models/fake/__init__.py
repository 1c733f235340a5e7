"""Simulated models, one for each component API, all named `fake`."""
