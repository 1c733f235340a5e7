"""Calls of the agent to its cloud: settings and versions, and reports."""
