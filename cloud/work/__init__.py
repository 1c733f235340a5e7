"""Fair sharing of resources among organizations: slots, threads, and limits on open streams."""
