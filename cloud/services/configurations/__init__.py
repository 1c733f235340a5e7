"""Published calls for configurations and fragments, and further calls for their editor."""
