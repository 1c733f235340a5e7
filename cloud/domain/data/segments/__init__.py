"""Segments: readings in columns, each with a column for every field, which replace rows of the database."""
