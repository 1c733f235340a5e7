"""The drivers: `models` is the table of all."""
