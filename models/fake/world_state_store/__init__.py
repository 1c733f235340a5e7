"""A simulated world state store, one object of which moves."""
