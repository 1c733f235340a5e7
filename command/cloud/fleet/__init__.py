"""Commands for lists of machines, and work on many of them."""
