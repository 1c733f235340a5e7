"""Commands for the configurations of machines, and for fragments."""
