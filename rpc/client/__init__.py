"""Client channels, calls and credentials."""
