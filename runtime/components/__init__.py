"""Base classes of the component APIs, one module each: `from runtime.components.sensor import Sensor`.

Nothing is imported here, so that a machine pays only for the APIs it has.
"""
