"""Devices on the pins of a board."""
