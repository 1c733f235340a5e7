"""When an update or a restart may disturb the machine. Pure."""
