"""`machine module`: creates, runs, tests and packs a module."""
