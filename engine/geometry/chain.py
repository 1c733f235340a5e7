"""Forward kinematics of a chain, and the chain of the simulated arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from engine.components.motion.kinematics import JointType
from engine.geometry.spatial import Transform, about, length, scale
from engine.geometry.sva import Chain, Joint, Link
from schema import Capsule, Geometry, Pose


def _around(label: str, start: float, end: float, radius: float) -> tuple[Geometry, ...]:
    """Return a capsule along z."""
    center = Pose(z=(start + end) / 2)
    return (Geometry(center, capsule=Capsule(radius, end - start + 2 * radius), label=label),)


SIX_AXIS: Final = Chain(
    "six_axis",
    (
        Joint("waist", JointType.REVOLUTE, (0.0, 0.0, 1.0), -360.0, 360.0),
        Link("column", Transform(translation=(0.0, 0.0, 250.0)), _around("column", 60.0, 250.0, 50.0)),
        Joint("shoulder", JointType.REVOLUTE, (0.0, 1.0, 0.0), -135.0, 135.0),
        Link("upper_arm", Transform(translation=(0.0, 0.0, 300.0)), _around("upper_arm", 0.0, 300.0, 45.0)),
        Joint("elbow", JointType.REVOLUTE, (0.0, 1.0, 0.0), -150.0, 150.0),
        Link("forearm", Transform(translation=(0.0, 0.0, 250.0)), _around("forearm", 0.0, 180.0, 40.0)),
        Joint("forearm_roll", JointType.REVOLUTE, (0.0, 0.0, 1.0), -360.0, 360.0),
        Link("wrist", Transform(translation=(0.0, 0.0, 50.0)), _around("wrist", 0.0, 40.0, 38.0)),
        Joint("wrist_pitch", JointType.REVOLUTE, (0.0, 1.0, 0.0), -125.0, 125.0),
        Link("hand", Transform(translation=(0.0, 0.0, 80.0)), _around("hand", 0.0, 105.0, 30.0)),
        Joint("flange_roll", JointType.REVOLUTE, (0.0, 0.0, 1.0), -360.0, 360.0),
        Link("flange", Transform(translation=(0.0, 0.0, 60.0))),
    ),
)
"""A table-top arm with a reach of about a metre, straight up at zero."""


def forward_kinematics(chain: Chain, values: Sequence[float]) -> Transform:
    """Return the transform of the output with joints at `values` (degrees, mm)."""
    transform = Transform()
    position = iter(values)
    for part in chain.parts:
        if isinstance(part, Link):
            transform = transform.then(part.transform)
            continue
        value = next(position)
        if part.type is JointType.PRISMATIC:
            transform = transform.then(Transform(translation=scale(part.axis, value / length(part.axis))))
        else:
            transform = transform.then(Transform(about(part.axis, math.radians(value))))
    return transform
