"""Releases of the programs: which of them to trust, and which one to install."""
