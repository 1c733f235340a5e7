"""Resources that combine several others of their own API."""
