"""Inventory: what is connected to this computer, what it probably is, and what stands in the way of using it."""
