"""Simulated models, one for each API, all named `fake`."""
