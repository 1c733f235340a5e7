"""Signed releases of an organization: TUF metadata, files, rollouts, and the reports of agents."""
