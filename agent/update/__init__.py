"""The update of a program as one table: its record, its steps, and the file that the record is stored in."""
