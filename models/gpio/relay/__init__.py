"""Switch `relay`: a relay on one pin, with minimum times for on and off."""
