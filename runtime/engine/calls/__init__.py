"""Calls to resources: dispatch to drivers, operations, sessions and limits."""
