"""Arms, and arms made of others."""
