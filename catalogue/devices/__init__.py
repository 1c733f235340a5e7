"""Attributes of the models in `runtime.models.devices`."""
