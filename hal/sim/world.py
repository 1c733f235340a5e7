"""The simulated bench of one machine: everything on it, its clock and its seeded noise."""

from __future__ import annotations


class World:
    """One bench; owned by the composition root, shared by the simulated models of one machine."""
