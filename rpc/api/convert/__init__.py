"""Conversion between Python values and messages, driven by descriptors and type hints."""
