"""Devices on USB, serial ports and the input system."""
