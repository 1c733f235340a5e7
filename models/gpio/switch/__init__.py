"""Switch `gpio`: a switch whose positions are levels of several pins."""
