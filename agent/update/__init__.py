"""The update of a program as one table: its record and its steps."""
