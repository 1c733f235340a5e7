"""The simulated implementation of the ports: a world of devices connected by wires."""

from hal.sim.bench.world import World as World

__all__ = ["World"]
