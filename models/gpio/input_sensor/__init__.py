"""Sensor `gpio_input`: levels of pins as readings."""
