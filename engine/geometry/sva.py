"""Reads and writes kinematics in the SVA JSON format. Pure.

The format has `links` and `joints`, each with `id` and `parent`, which form one chain from `world`. A link has a
`translation` (mm) and an `orientation` ({type, value}); a joint has a `type`, an `axis`, and `min` and `max` (degrees,
mm). Both may have a `geometry` (box, sphere or capsule) in the frame in which the link or joint begins.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.components.motion.kinematics import (
    JointLimits,
    JointType,
    KinematicJoint,
    KinematicLink,
    KinematicModel,
    Kinematics,
    KinematicsFormat,
    LinkPose,
)
from engine.geometry.spatial import (
    IDENTITY,
    Matrix,
    Transform,
    Vector,
    from_quaternion,
    to_orientation,
)
from schema import FORMS, ConfigError, Geometry, Vector3, decode_frame
from schema.decoding import DecodingReport

_TYPES = {"revolute": JointType.REVOLUTE, "prismatic": JointType.PRISMATIC, "continuous": JointType.CONTINUOUS}


@dataclass(frozen=True, slots=True)
class Link:
    """A rigid part, with the transform from its start to its end."""

    id: str
    transform: Transform
    shapes: tuple[Geometry, ...] = ()  # for collisions, in the frame in which the link begins


@dataclass(frozen=True, slots=True)
class Joint:
    """A joint; limits are in degrees or mm, and `speed` is in them per second."""

    id: str
    type: JointType
    axis: Vector
    low: float
    high: float
    speed: float = math.inf


@dataclass(frozen=True, slots=True)
class Chain:
    """Links and joints in order from `world` to the output."""

    name: str
    parts: tuple[Link | Joint, ...]

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The joints, base first."""
        return tuple(part for part in self.parts if isinstance(part, Joint))


def sliding(name: str, axes: Sequence[str], lengths: Sequence[float]) -> Kinematics:
    """Return the kinematics of sliding axes x, y, z (other names mean x), each from 0 to its length."""
    directions: dict[str, Vector] = {"y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
    joints = [
        Joint(axis, JointType.PRISMATIC, directions.get(axis, (1.0, 0.0, 0.0)), 0.0, length)
        for axis, length in zip(axes, lengths, strict=True)
    ]
    return kinematics(Chain(name, tuple(joints)))


def kinematics(chain: Chain) -> Kinematics:
    """Return the result of `get_kinematics` for a chain."""
    return Kinematics(KinematicsFormat.SVA, dump(chain), {}, _model(chain))


def dump(chain: Chain) -> bytes:
    """Return the chain as SVA JSON."""
    links: list[dict[str, Any]] = []
    joints: list[dict[str, Any]] = []
    parent = "world"
    for part in chain.parts:
        if isinstance(part, Link):
            o = to_orientation(part.transform.rotation)
            link: dict[str, Any] = {"id": part.id, "parent": parent, "translation": _xyz(part.transform.translation)}
            if part.transform.rotation != IDENTITY:
                value = {"x": o.o_x, "y": o.o_y, "z": o.o_z, "th": o.theta}
                link["orientation"] = {"type": "ov_degrees", "value": value}
            links.append(link)
            if part.shapes:
                link["geometry"] = _shape_document(part.shapes[0])
                # The format has one shape for a link: further ones become links without length.
                for number, shape in enumerate(part.shapes[1:], 1):
                    extra_id = f"{part.id}_{number}"
                    links.insert(-1, {"id": extra_id, "parent": parent, "geometry": _shape_document(shape)})
                    parent = link["parent"] = extra_id
        else:
            joints.append(
                {
                    "id": part.id,
                    "type": part.type.name.lower(),
                    "parent": parent,
                    "axis": _xyz(part.axis),
                    "min": part.low,
                    "max": part.high,
                }
            )
        parent = part.id
    return json.dumps(
        {"name": chain.name, "kinematic_param_type": "SVA", "links": links, "joints": joints}, indent=1
    ).encode()


def load(data: bytes, path: str) -> Chain:
    """Read a chain without branches from SVA JSON; raises ConfigError at `path` if it is not valid."""
    try:
        document = json.loads(data)
        parts = {part["id"]: (part, _part(part)) for part in (*document["links"], *document.get("joints", ()))}
        children = {part["parent"]: name for name, (part, _) in parts.items()}
        chain, end = [], "world"
        while end in children:
            end = children.pop(end)
            chain.append(parts[end][1])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(path, f"not a kinematics file in SVA JSON ({type(error).__name__}: {error})") from error
    if len(chain) != len(parts):
        raise ConfigError(path, "links and joints do not form one chain from 'world'")
    return Chain(str(document.get("name", "")), tuple(chain))


def _part(part: Mapping[str, Any]) -> Link | Joint:
    if "axis" not in part:
        rotation = _rotation(part.get("orientation"))
        shapes = shapes_of(part.get("geometry"), part["id"])
        return Link(part["id"], Transform(rotation, _vector(part.get("translation") or {})), shapes)
    axis = _vector(part["axis"])
    low, high = float(part.get("min", -math.inf)), float(part.get("max", math.inf))
    if not any(axis) or not low <= high:
        raise ValueError(f"joint {part['id']!r} has no axis" if not any(axis) else f"joint {part['id']!r}: min > max")
    return Joint(part["id"], _TYPES[part["type"]], axis, low, high)


def shapes_of(raw: Any, label: str) -> tuple[Geometry, ...]:
    """Read the `geometry` of a link; a point and a mesh are no shape. ValueError if it is not valid."""
    report = DecodingReport()
    frame = decode_frame({"geometry": raw}, label, report)
    if frame is None:
        raise ValueError(str(report.problems[0]))
    shape = frame.geometry
    if shape is None or (shape.sphere is not None and not shape.sphere.radius_mm):
        return ()
    return (replace(shape, label=shape.label or label),)


def _shape_document(shape: Geometry) -> dict[str, Any]:
    document: dict[str, Any] = {"label": shape.label}
    if shape.box is not None:
        document |= {"type": "box", **_xyz((shape.box.dims_mm.x, shape.box.dims_mm.y, shape.box.dims_mm.z))}
    elif shape.capsule is not None:
        document |= {"type": "capsule", "r": shape.capsule.radius_mm, "l": shape.capsule.length_mm}
    elif shape.sphere is not None:
        document |= {"type": "sphere", "r": shape.sphere.radius_mm}
    at = shape.center
    document["translation"] = _xyz((at.x, at.y, at.z))
    value = {"x": at.o_x, "y": at.o_y, "z": at.o_z, "th": at.theta}
    document["orientation"] = {"type": "ov_degrees", "value": value}
    return document


def _vector(value: Mapping[str, Any]) -> Vector:
    lower = {key.lower(): float(number) for key, number in value.items()}
    if not all(map(math.isfinite, lower.values())):
        raise ValueError(f"{value} has a number that is not finite")
    return (lower.get("x", 0.0), lower.get("y", 0.0), lower.get("z", 0.0))


def _rotation(orientation: Mapping[str, Any] | None) -> Matrix:
    if not orientation or not orientation.get("type"):
        return IDENTITY
    keys, quaternion = FORMS[orientation["type"]]
    lower = {key.lower(): float(number) for key, number in orientation["value"].items()}
    return from_quaternion(*quaternion(*(lower.get(key, 0.0) for key in keys)))


def _model(chain: Chain) -> KinematicModel:
    links: list[KinematicLink] = []
    joints: list[KinematicJoint] = []
    parent = "world"
    for part in chain.parts:
        if isinstance(part, Link):
            pose = LinkPose(
                Vector3(*part.transform.translation), orientation_vector=to_orientation(part.transform.rotation)
            )
            # Shapes of the message are in the frame in which the link ends.
            links.append(KinematicLink(part.id, parent, pose, [_moved(part, shape) for shape in part.shapes]))
        else:
            numbers = (limit if math.isfinite(limit) else None for limit in (part.low, part.high, part.speed))
            limits = JointLimits(*numbers)
            joints.append(KinematicJoint(part.id, parent, part.type, Vector3(*part.axis), limits))
        parent = part.id
    return KinematicModel(chain.name, links, joints, (parent,))


def _moved(link: Link, shape: Geometry) -> Geometry:
    return replace(shape, center=link.transform.inverse().then(Transform.of(shape.center)).pose())


def _xyz(v: Vector) -> dict[str, float]:
    return {"x": v[0], "y": v[1], "z": v[2]}
