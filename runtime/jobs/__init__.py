"""Jobs: methods of resources called by the clock."""
