"""Attributes of the models in `runtime.builtin.shell`."""
