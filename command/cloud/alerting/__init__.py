"""`machine cloud alerts`."""
