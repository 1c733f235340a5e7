"""Decoding of JSON text to typed values, with a report of all errors."""
