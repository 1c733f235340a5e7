"""The simulated bench: its world and the devices on it."""
