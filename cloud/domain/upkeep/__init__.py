"""Maintenance of the database and the file store: expiry, and checking that both belong together."""
