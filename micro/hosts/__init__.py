"""Connects the machine to its host: pins, clocks, files and sockets."""
