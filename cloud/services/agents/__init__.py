"""Calls of machine-agent and about it: settings and versions, reports, requests, and installation."""
