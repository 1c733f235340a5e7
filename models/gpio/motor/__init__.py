"""Motor `gpio`: a DC motor on a power bridge, with or without an encoder."""
