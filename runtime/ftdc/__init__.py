"""Full-time data capture: the statistics of the last hours in a ring of files, for looking back."""
