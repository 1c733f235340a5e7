"""Routes for programs: JSON calls, downloads, metrics, and the push channel of machines."""
