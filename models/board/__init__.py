"""Board `linux`: the pins of this computer, on any supported board."""
