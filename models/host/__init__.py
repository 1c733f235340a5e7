"""Sensor `host`: processor, memory, disk, network, temperatures and uptime of this computer."""
