"""Sensor `command`: readings from the output of a program."""
