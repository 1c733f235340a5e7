"""The motion service `builtin`."""
