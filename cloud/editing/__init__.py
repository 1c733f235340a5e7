"""What the configuration editor knows: where things stand in a text, what may stand there, and what differs. Pure."""
