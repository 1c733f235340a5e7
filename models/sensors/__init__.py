"""The sensors service: readings of many sensors in one call."""
