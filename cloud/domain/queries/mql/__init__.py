"""Aggregations in the language of MongoDB, as statements in SQL."""
