"""A queue on disk that survives crashes and power cuts."""
