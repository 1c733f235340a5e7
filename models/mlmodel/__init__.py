"""Services that run trained models."""
