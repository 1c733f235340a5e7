"""Hooks: programs of the device's owner that run before and after updates, switches and roll-backs."""
