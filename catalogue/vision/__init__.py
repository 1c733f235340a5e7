"""Attributes of the models in `runtime.builtin.vision`."""
