"""Tables of lists of machines, their tags, work on many machines, and saved views."""
