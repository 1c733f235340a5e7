"""`machine agent`: machine-agent on this computer."""
