"""The family behind the ports that Linux provides."""
