"""Movement sensor `merged`: each measurement comes from the first of several movement sensors that answers."""
