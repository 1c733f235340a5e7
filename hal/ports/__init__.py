"""Ports: the interfaces through which the rest of the machine uses hardware, one contract per file."""
