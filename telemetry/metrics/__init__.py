"""Metrics and spans: their types, and the formats in which they are written and exported."""
