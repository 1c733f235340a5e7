"""Engines: what runs the program of a job. `port` is the interface, `local` runs it on this computer."""
