"""Files of captured readings in the published format: writing, reading, and recovery after a crash."""
