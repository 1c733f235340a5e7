"""SQL queries over captured readings, executed in separate processes."""
