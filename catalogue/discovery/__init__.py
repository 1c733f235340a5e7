"""Attributes of the models in `runtime.models.discovery`."""
