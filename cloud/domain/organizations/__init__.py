"""Organizations, their locations, API keys, and locations shared with other organizations."""
