"""Vocabulary of all other packages: names, documents, validation and differences. Pure."""
