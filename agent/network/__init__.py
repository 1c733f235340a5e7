"""Network management as a part of the agent: its settings, its commands, and its place in the report."""
