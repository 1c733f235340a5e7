"""The simulated implementation of the ports: a world of devices connected by wires.

Public, in the order in which to read them:

* `bench.device`: The base class of all devices on the simulated bench
* `faults`: Fault injection: no acknowledge, gone, slow, wrong bits, noise; with a seed, so that runs are reproducible
* `gpio.signal`: Signals of lines between two changes, as pure functions of time
* `target`: The interfaces of simulated chips and devices for their buses
* `bench.axes`: Simulated axes of servos, arms, gantries and grippers, which move to their targets at constant speed
* `bench.encoder`: A simulated incremental encoder: a disc on a shaft, the pins that it drives, and the counter that
  reads them
* `gpio.pins`: Simulated digital lines: reading, driving, waves, edges and counters
* `bench.board`: A simulated board: pins, analog channels and interrupt counters
* `bench.motor`: A simulated motor: a shaft, which may be driven through pins
* `bench.base`: A simulated base with two sets of wheels, whose motion determines its position
* `bench.world`: The simulated bench of a machine: its devices, clock and seeded noise
* `bench.picture`: The image of the bench for a camera above it
* `hardware`: The simulated implementation of all ports on the world of a bench, with functions for tests to change the
  world
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hal.sim.bench.axes import SimAxes as SimAxes
    from hal.sim.bench.axes import SimControl as SimControl
    from hal.sim.bench.base import SimBase as SimBase
    from hal.sim.bench.board import COUNTS as COUNTS
    from hal.sim.bench.board import VOLTS as VOLTS
    from hal.sim.bench.board import SimAnalog as SimAnalog
    from hal.sim.bench.board import SimBoard as SimBoard
    from hal.sim.bench.device import Device as Device
    from hal.sim.bench.encoder import SimEncoder as SimEncoder
    from hal.sim.bench.motor import MotorPins as MotorPins
    from hal.sim.bench.motor import SimMotor as SimMotor
    from hal.sim.bench.picture import render_bench as render_bench
    from hal.sim.bench.world import World as World
    from hal.sim.faults import FaultPlan as FaultPlan
    from hal.sim.gpio.pins import DEFAULT_FREQUENCY as DEFAULT_FREQUENCY
    from hal.sim.gpio.pins import EdgeCounter as EdgeCounter
    from hal.sim.gpio.pins import first_edge as first_edge
    from hal.sim.gpio.signal import HIGH as HIGH
    from hal.sim.gpio.signal import LOW as LOW
    from hal.sim.hardware import SimHardware as SimHardware
    from hal.sim.target import Nak as Nak
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "bench.device": ["Device"],
            "faults": ["FaultPlan"],
            "gpio.signal": ["HIGH", "LOW"],
            "target": ["Nak"],
            "bench.axes": ["SimAxes", "SimControl"],
            "bench.encoder": ["SimEncoder"],
            "gpio.pins": ["DEFAULT_FREQUENCY", "EdgeCounter", "first_edge"],
            "bench.board": ["COUNTS", "VOLTS", "SimAnalog", "SimBoard"],
            "bench.motor": ["MotorPins", "SimMotor"],
            "bench.base": ["SimBase"],
            "bench.world": ["World"],
            "bench.picture": ["render_bench"],
            "hardware": ["SimHardware"],
        },
    )
