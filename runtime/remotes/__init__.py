"""Other machines whose resources this one uses as its own."""
