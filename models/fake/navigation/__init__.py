"""A simulated navigation service, which is wherever it is sent."""
