"""Shared by arms that compute their own kinematics: files, poses and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import trio

from engine import JointType
from engine.geometry import Chain, Joint, Transform
from engine.kinematics import (
    IDENTITY,
    MAX_BYTES,
    apart,
    compose,
    flat,
    mechanism_of,
    read_chain,
    solutions,
    transform_of,
)
from models.common.motion import check_finite
from schema import ConfigError, ErrorKind, Geometry, MachineError, Pose

MODEL_PATH: Final = "attributes.model-path"


def chain_in_file(text: str) -> Chain:
    """Read a kinematics file; ConfigError if it cannot be read, is not valid, or has no joints."""
    path = Path(text).expanduser()
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            MODEL_PATH, f"{path}: {error.strerror}", remedy="use the path of a readable kinematics file"
        ) from error
    chain = read_chain(data, MODEL_PATH)
    if not chain.joints:
        raise ConfigError(MODEL_PATH, f"{path} has no joints")
    return chain


async def joints_for(chain: Chain, to: Pose, near: Sequence[float], owner: str) -> list[float]:
    """Return the positions (degrees, mm) for a pose, as near to `near` as possible; INVALID if it is out of reach.

    Other tasks run in between.
    """
    check_finite("the pose", to.x, to.y, to.z, to.o_x, to.o_y, to.o_z, to.theta)
    mechanism = mechanism_of(chain)
    start = mechanism.to_values(near)
    best: list[float] | None = None
    for values in solutions(mechanism, flat(Transform.of(to)), start):
        if values is None:
            await trio.lowlevel.checkpoint()
        elif best is None or apart(mechanism.axes, values, start) < apart(mechanism.axes, best, start):
            best = values
    if best is None:
        raise MachineError(
            f"{owner}: the pose at ({to.x:g}, {to.y:g}, {to.z:g}) mm is out of reach",
            kind=ErrorKind.INVALID,
            remedy="choose a pose nearer to the arm, or another orientation",
        )
    return [
        min(joint.high, max(joint.low, position))  # a rounding error beyond a limit
        for joint, position in zip(chain.joints, mechanism.to_positions(best), strict=True)
    ]


def shapes_at(chain: Chain, positions: Sequence[float], owner: str) -> list[Geometry]:
    """Return the shapes of an arm in its own frame, at these positions."""
    mechanism = mechanism_of(chain)
    bodies = mechanism.bodies(mechanism.to_values(positions))
    shapes = []
    body, placement = 0, IDENTITY
    for part in chain.parts:
        if isinstance(part, Joint):
            body, placement = body + 1, IDENTITY
            continue
        for shape in part.shapes:
            place = compose(compose(bodies[body], placement), flat(Transform.of(shape.center)))
            shapes.append(replace(shape, center=transform_of(place).pose(), label=f"{owner}:{shape.label}"))
        placement = compose(placement, flat(part.transform))
    return shapes


def check_positions(chain: Chain, positions: Sequence[float], owner: str) -> list[float]:
    """Return positions that are finite and within the limits, one for each joint; INVALID otherwise."""
    values = list(positions)
    check_finite("joint positions", *values)
    if len(values) != len(chain.joints):
        raise MachineError(
            f"joint positions: {len(values)} values for {len(chain.joints)} axes", kind=ErrorKind.INVALID
        )
    for value, joint in zip(values, chain.joints, strict=True):
        if not joint.low <= value <= joint.high:
            unit = " mm" if joint.type is JointType.PRISMATIC else ""
            raise MachineError(
                f"{owner}: joint {joint.id} cannot go to {value:g}{unit}",
                kind=ErrorKind.INVALID,
                remedy=f"use {joint.low:g} to {joint.high:g}",
            )
    return values
