"""Calls to machines through the cloud, over connections that the machines open."""
