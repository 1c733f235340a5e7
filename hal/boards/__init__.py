"""Boards as data: which pin of which header is which line of which chip."""
