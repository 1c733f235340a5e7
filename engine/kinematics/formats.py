"""Reads kinematics in every published form. Pure.

These are JSON with links and joints (SVA), JSON with parameters (DH), URDF, and the structure that a driver returns.
"""

from __future__ import annotations

import json
import math
from typing import Final

from engine.components.motion.kinematics import JointType, KinematicJoint, KinematicModel, Kinematics
from engine.geometry.forward import end_of, pose_of_link
from engine.geometry.spatial import Transform
from engine.geometry.sva import Chain, Joint, Link, load
from schema import ConfigError, ErrorKind, Geometry, MachineError

MAX_JOINTS: Final = 32  # of an arm
MAX_BYTES: Final = 1024 * 1024  # of a file, which is parsed on the event loop
LONGEST: Final = 1e6  # mm, of a link
_ERRORS: Final = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


def read_chain(data: bytes, path: str) -> Chain:
    """Read a kinematics file; ConfigError at `path` if it is not valid."""
    if len(data) > MAX_BYTES:
        raise ConfigError(path, f"a kinematics file of {len(data)} bytes, more than {MAX_BYTES}")
    if data.lstrip()[:1] == b"<":
        from engine.kinematics.urdf import load_urdf  # the XML parser takes 0.5 MiB

        try:
            return _checked(load_urdf(data), path)
        except _ERRORS as error:
            raise ConfigError(path, f"not a kinematics file in URDF ({_reason(error)})") from error
    try:
        document = json.loads(data)
        if document.get("dhParams"):
            from engine.kinematics.dh import load_parameters

            return _checked(load_parameters(document), path)
    except _ERRORS as error:
        raise ConfigError(path, f"not a kinematics file in JSON ({_reason(error)})") from error
    return _checked(load(data, path), path)


def chain_of(kinematics: Kinematics, owner: str) -> Chain:
    """Return the chain of the kinematics that a driver reports; `owner` is for errors. UNSUPPORTED if they are none."""
    try:
        if kinematics.kinematics_data:
            return read_chain(kinematics.kinematics_data, "kinematics_data")
        if kinematics.model is not None and (kinematics.model.links or kinematics.model.joints):
            return _checked(_chain_of_model(kinematics.model), "model")
    except (ConfigError, *_ERRORS) as error:
        raise MachineError(
            f"the kinematics of {owner} cannot be used: {_reason(error)}", kind=ErrorKind.UNSUPPORTED
        ) from error
    raise MachineError(
        f"{owner} reports no kinematics",
        kind=ErrorKind.UNSUPPORTED,
        remedy="use a driver that does, or wrap it in the model wrapper_arm with a kinematics file",
    )


def _checked(chain: Chain, path: str) -> Chain:
    if len(chain.joints) > MAX_JOINTS:
        raise ConfigError(path, f"more than {MAX_JOINTS} joints")
    for part in chain.parts:
        if isinstance(part, Link):
            numbers = (*part.transform.translation, *(x for row in part.transform.rotation for x in row))
            if not all(abs(number) <= LONGEST for number in numbers):
                raise ConfigError(path, f"link {part.id!r} has a number that is not from {-LONGEST:g} to {LONGEST:g}")
        elif not 1 / LONGEST <= math.hypot(*part.axis) <= LONGEST or any(map(math.isnan, (part.low, part.high))):
            raise ConfigError(path, f"joint {part.id!r} has an axis without a direction, or NaN as a limit")
    return chain


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, ConfigError | ValueError) else f"{type(error).__name__}: {error}"


def _chain_of_model(model: KinematicModel) -> Chain:
    parts = {link.id: link for link in model.links} | {joint.id: joint for joint in model.joints}
    name = end_of(model, parts)
    path: list[Link | Joint] = []
    for _ in parts:
        part = parts[name]
        if isinstance(part, KinematicJoint):
            path.append(_joint(part))
        else:
            transform = Transform.of(pose_of_link(part.pose))
            path.append(Link(part.id, transform, tuple(_at_start(transform, shape) for shape in part.collision)))
        name = part.parent
        if name not in parts:
            return Chain(model.name, tuple(reversed(path)))
    raise ValueError("the parents form a cycle")


def _at_start(transform: Transform, shape: Geometry) -> Geometry:
    center = transform.then(Transform.of(shape.center)).pose()
    return Geometry(center, shape.sphere, shape.box, shape.capsule, shape.label)


def _joint(joint: KinematicJoint) -> Joint:
    if joint.mimic is not None:
        raise ValueError(f"joint {joint.id!r} follows another joint, which is not supported")
    axis = (joint.axis.x, joint.axis.y, joint.axis.z)
    if not any(axis) or not all(map(math.isfinite, axis)):
        raise ValueError(f"joint {joint.id!r} has no axis")
    limits = joint.limits
    low = -math.inf if limits is None or limits.min is None else limits.min
    high = math.inf if limits is None or limits.max is None else limits.max
    if joint.type is JointType.CONTINUOUS:
        low, high = -math.inf, math.inf
    if not low <= high:
        raise ValueError(f"joint {joint.id!r}: min is above max")
    speed = math.inf if limits is None or not limits.max_velocity else limits.max_velocity
    return Joint(joint.id, joint.type, axis, low, high, speed)
