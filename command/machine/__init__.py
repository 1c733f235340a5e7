"""Commands for one machine."""
