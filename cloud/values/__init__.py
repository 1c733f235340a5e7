"""Small value types shared by the whole cloud: callers, identifiers, times, limits, page tokens."""
