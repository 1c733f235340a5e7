"""Databases of the cloud, SQLite and PostgreSQL: transactions are functions that use SQL."""
