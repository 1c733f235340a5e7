"""Inventory: the hardware that is connected to this computer, and the problems that prevent its use."""
