"""Input controller `gpio`: buttons and toggle switches on pins of a board."""
