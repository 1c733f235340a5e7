"""Ports: what the rest of the machine may ask of hardware, one contract in a file."""
