"""Logic of the configuration editor: positions in a text, completion, checks and differences. Pure."""
