"""The simulated family behind the ports: a world with wires."""

from hal.sim.world import World as World

__all__ = ["World"]
