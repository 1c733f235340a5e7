"""Remotes: other machines whose resources this machine uses like its own."""
