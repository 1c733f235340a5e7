"""Attributes of the simulated models in `runtime.models.fake.controls`."""
