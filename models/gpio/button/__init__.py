"""Button `gpio`: a button whose push is a pulse on a pin."""
