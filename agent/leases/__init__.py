"""Leases: programs on the device hold off updates and restarts for some time."""
