"""Full-time data capture: statistics of the last hours in a ring of files, for later diagnosis."""
