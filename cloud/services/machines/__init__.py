"""Published calls for machines: management, the machine's own calls, and those of its agent."""
