"""Triggers and their deliveries: calls of commands and pages."""
