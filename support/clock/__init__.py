"""The clock of the computer: its time zone."""
