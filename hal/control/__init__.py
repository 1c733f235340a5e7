"""Motion control: trajectories, PID, encoders, drive geometry and odometry. Pure.

Public, in the order in which to read them:

* `differential`: Differential drive: convert the motion of the vehicle to that of its wheels, and back
* `odometry`: Dead reckoning: the position of a vehicle after driving an arc, also as latitude and longitude
* `pid`: A PID controller without state
* `quadrature`: Decoding of incremental encoders with two tracks that are a quarter of a period apart
* `trajectory`: Trapezoidal trajectories, one control period at a time, within limits of speed and acceleration
* `speed`: Control of a motor's speed and position by its encoder: it follows a trajectory with feed-forward and PID
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hal.control.differential import Chassis as Chassis
    from hal.control.differential import Sides as Sides
    from hal.control.differential import mix as mix
    from hal.control.odometry import PlanarPose as PlanarPose
    from hal.control.odometry import after_arc as after_arc
    from hal.control.odometry import on_globe as on_globe
    from hal.control.pid import Gains as Gains
    from hal.control.pid import pid_output as pid_output
    from hal.control.quadrature import Quadrature as Quadrature
    from hal.control.speed import DEFAULT_GAINS as DEFAULT_GAINS
    from hal.control.speed import SpeedControl as SpeedControl
    from hal.control.trajectory import MotionState as MotionState
    from hal.control.trajectory import at_speed as at_speed
    from hal.control.trajectory import to_place as to_place
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "differential": ["Chassis", "Sides", "mix"],
            "odometry": ["PlanarPose", "after_arc", "on_globe"],
            "pid": ["Gains", "pid_output"],
            "quadrature": ["Quadrature"],
            "trajectory": ["MotionState", "at_speed", "to_place"],
            "speed": ["DEFAULT_GAINS", "SpeedControl"],
        },
    )
