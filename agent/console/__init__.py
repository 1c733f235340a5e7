"""The control socket of the agent, and its client: `machine agent` on the same computer."""
