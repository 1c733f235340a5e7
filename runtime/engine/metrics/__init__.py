"""Metrics of a machine: its process, the network, its calls."""
