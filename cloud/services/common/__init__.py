"""Foundation of the services: the caller, its transactions, and shared messages."""
