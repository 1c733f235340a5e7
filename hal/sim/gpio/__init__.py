"""Simulated GPIO: signals, pins, the wires between them, and lines as an implementation of the ports."""
