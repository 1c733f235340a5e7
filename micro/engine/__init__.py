"""The machine: its configuration and resources, calls, sessions, access, logs and captured data."""
