"""Diagnosis of a device by `machine agent check` and `machine agent bundle`. Works while the agent does not run."""
