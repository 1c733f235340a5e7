"""Vocabulary: names, documents, validation and differences; pure, and below every other room."""
