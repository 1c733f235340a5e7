"""Alerts and their rules: calls of commands and pages."""
