"""machine-server: command line, composition, port and shutdown."""
