"""Base classes of the component APIs, one module each: `from engine.components.sensing.sensor import Sensor`.

Nothing is imported here, so that a machine loads only the APIs that it uses.
"""
