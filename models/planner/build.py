"""Makes the shapes of a problem from chains and geometries. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from engine.geometry import Chain, Joint, Transform
from engine.kinematics import IDENTITY, Flat, compose, flat
from models.planner.problem import Solid
from schema import ErrorKind, Geometry, MachineError, Pose

MAX_SIZE: Final = 1e6  # mm, of a shape, and of its distance from its frame


def arm_solids(chain: Chain, owner: str, *, offset: int = 0) -> list[Solid]:
    """Return the shapes of an arm whose first joint is number `offset` + 1."""
    solids = []
    body, placement = offset, IDENTITY
    for part in chain.parts:
        if isinstance(part, Joint):
            body, placement = body + 1, IDENTITY
            continue
        solids += [
            solid_of(shape, f"{owner}:{shape.label or part.id}", owner, body, placement) for shape in part.shapes
        ]
        placement = compose(placement, flat(part.transform))
    return solids


def solid_of(shape: Geometry, label: str, owner: str, body: int, frame: Flat) -> Solid:
    """Return the solid of a shape that is given in `frame`; INVALID for wrong numbers and shapes that are not known."""
    check_pose(shape.center, label)
    half, radius = (0.0, 0.0, 0.0), 0.0
    if shape.box is not None:
        dims = shape.box.dims_mm
        check_sizes(label, dims.x, dims.y, dims.z)
        half = (dims.x / 2, dims.y / 2, dims.z / 2)
    elif shape.capsule is not None:
        radius, length = shape.capsule.radius_mm, shape.capsule.length_mm
        check_sizes(label, radius, length)
        if length < 2 * radius:
            raise MachineError(
                f"{label}: the length of a capsule ({length:g} mm) is less than its diameter",
                kind=ErrorKind.INVALID,
                remedy="give the total length",
            )
        half = (0.0, 0.0, length / 2 - radius)
    elif shape.sphere is not None:
        radius = shape.sphere.radius_mm
        check_sizes(label, radius)
    else:
        raise MachineError(
            f"{label} has no shape that can be checked",
            kind=ErrorKind.INVALID,
            remedy="describe it by a box, sphere or capsule; meshes and point clouds are not supported",
        )
    return Solid(label, owner, body, compose(frame, flat(Transform.of(shape.center))), half, radius)


def check_pose(pose: Pose, what: str) -> None:
    """Raise INVALID for a pose with numbers that are not finite or too large."""
    for name in ("x", "y", "z", "o_x", "o_y", "o_z", "theta"):
        value = getattr(pose, name)
        if not math.isfinite(value) or abs(value) > MAX_SIZE:
            raise MachineError(
                f"{what}: {name} is {value:g}", kind=ErrorKind.INVALID, remedy=f"use numbers up to {MAX_SIZE:g}"
            )


def check_sizes(what: str, *sizes: float) -> None:
    """Raise INVALID for a size that is negative, not finite or too large."""
    for size in sizes:
        if not 0 <= size <= MAX_SIZE:
            raise MachineError(
                f"{what}: a size of {size:g} mm", kind=ErrorKind.INVALID, remedy=f"use 0 to {MAX_SIZE:g} mm"
            )


def joint_names(chains: Iterable[Chain]) -> list[str]:
    """Return the names of all joints, base first."""
    return [joint.id for chain in chains for joint in chain.joints]
