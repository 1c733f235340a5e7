"""Calls for signed releases, rollouts, and downloads by machines."""
