"""Reads kinematics from URDF. Pure.

URDF is in metres and radians. The chain goes from the root link to the link behind the most joints. Joints of type
`fixed` become part of the links. Shapes are boxes, spheres, and cylinders, which become the smaller of a box and a
capsule around them. Meshes are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from engine.components.motion.kinematics import JointType
from engine.geometry.spatial import Transform, Vector, about, multiply
from engine.geometry.sva import Chain, Joint, Link
from schema import Capsule, Geometry, Pose, RectangularPrism, Sphere, Vector3

_TYPES: Final = {
    "revolute": JointType.REVOLUTE,
    "continuous": JointType.CONTINUOUS,
    "prismatic": JointType.PRISMATIC,
    "fixed": None,
}
_SLENDER: Final = 4.9  # a cylinder longer than this many radii has a smaller capsule than box around it


def load_urdf(data: bytes) -> Chain:
    """Return the chain; ValueError or KeyError if the document is not valid."""
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise ValueError("document types and entities are not allowed")
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise ValueError(f"not XML: {error}") from None
    links = {link.attrib["name"]: link for link in root.findall("link")}
    joints = {_link_of(joint, "child"): joint for joint in root.findall("joint")}
    for follower in joints.values():
        if follower.find("mimic") is not None:
            raise ValueError(f"joint {follower.attrib.get('name')!r} follows another joint, which is not supported")
    parts: list[Link | Joint] = []
    for link, joint in _longest(links, joints):
        if joint is not None:
            parts += [Link(f"{joint.attrib['name']}_origin", _origin(joint)), *_joint(joint)]
        parts.append(Link(link, Transform(), tuple(_shapes(links[link]))))
    if not any(isinstance(part, Joint) for part in parts):
        raise ValueError("it has no joints that move")
    return Chain(root.attrib.get("name", ""), tuple(parts))


def _longest(links: dict[str, Element], joints: dict[str, Element]) -> list[tuple[str, Element | None]]:
    """Return the links of the chain, each with the joint before it."""
    roots = [name for name in links if name not in joints]
    if len(roots) != 1 or not joints.keys() <= links.keys():
        raise ValueError(f"it has {len(roots)} links without a parent instead of one, or a joint without its link")
    best: list[tuple[str, Element | None]] = []
    most = (-1, -1)
    parents = {_link_of(joint, "parent") for joint in joints.values()}
    for leaf in links:
        if leaf in parents:
            continue
        path: list[tuple[str, Element | None]] = []
        name, visited = leaf, set[str]()
        while True:
            if name in visited or name not in links:
                raise ValueError(f"link {name!r} is its own ancestor" if name in visited else f"no link {name!r}")
            visited.add(name)
            joint = joints.get(name)
            path.append((name, joint))
            if joint is None:
                break
            name = _link_of(joint, "parent")
        count = sum(1 for _, joint in path if joint is not None and joint.attrib.get("type") != "fixed")
        if (count, len(path)) > most:
            most, best = (count, len(path)), path[::-1]
    if not best:
        raise ValueError("it has no link without children")
    return best


def _joint(joint: Element) -> list[Joint]:
    """Return a joint that moves; empty for a fixed one."""
    name, kind = joint.attrib["name"], joint.attrib.get("type", "")
    if kind not in _TYPES:
        raise ValueError(f"joint {name!r} has the type {kind!r}; use one of {', '.join(_TYPES)}")
    type_ = _TYPES[kind]
    if type_ is None:
        return []
    element = joint.find("axis")
    axis = _vector(element.attrib["xyz"]) if element is not None else (1.0, 0.0, 0.0)
    if not any(axis):
        raise ValueError(f"joint {name!r} has no axis")
    to_units = 1000.0 if type_ is JointType.PRISMATIC else math.degrees(1.0)
    limit = joint.find("limit")
    numbers = limit.attrib if limit is not None else {}
    low, high, speed = -math.inf, math.inf, _number(numbers.get("velocity", "0")) * to_units
    if type_ is not JointType.CONTINUOUS:
        low, high = (_number(numbers.get(key, "0")) * to_units for key in ("lower", "upper"))
    if not low <= high:
        raise ValueError(f"joint {name!r}: the lower limit is above the upper one")
    return [Joint(name, type_, axis, low, high, speed if speed > 0 else math.inf)]


def _origin(element: Element) -> Transform:
    """Return the `origin` of a joint or a shape, in mm."""
    origin = element.find("origin")
    if origin is None:
        return Transform()
    x, y, z = (1000.0 * number for number in _vector(origin.attrib.get("xyz", "0 0 0")))
    roll, pitch, yaw = _vector(origin.attrib.get("rpy", "0 0 0"))
    rotation = multiply(
        multiply(about((0.0, 0.0, 1.0), yaw), about((0.0, 1.0, 0.0), pitch)), about((1.0, 0.0, 0.0), roll)
    )
    return Transform(rotation, (x, y, z))


def _shapes(link: Element) -> Iterator[Geometry]:
    for collision in link.findall("collision"):
        geometry = collision.find("geometry")
        center, label = _origin(collision).pose(), link.attrib["name"]
        if geometry is None:
            continue
        if (box := geometry.find("box")) is not None:
            x, y, z = (1000.0 * _positive(number) for number in _vector(box.attrib["size"]))
            yield _box(center, x, y, z, label)
        elif (sphere := geometry.find("sphere")) is not None:
            yield Geometry(center, sphere=Sphere(1000.0 * _positive(_number(sphere.attrib["radius"]))), label=label)
        elif (cylinder := geometry.find("cylinder")) is not None:
            radius, size = (1000.0 * _positive(_number(cylinder.attrib[key])) for key in ("radius", "length"))
            if size > _SLENDER * radius:
                yield Geometry(center, capsule=Capsule(radius, size + 2 * radius), label=label)
            else:
                yield _box(center, 2 * radius, 2 * radius, size, label)


def _box(center: Pose, x: float, y: float, z: float, label: str) -> Geometry:
    return Geometry(center, box=RectangularPrism(Vector3(x, y, z)), label=label)


def _link_of(joint: Element, role: str) -> str:
    element = joint.find(role)
    if element is None:
        raise ValueError(f"joint {joint.attrib.get('name')!r} has no {role}")
    return element.attrib["link"]


def _vector(text: str) -> Vector:
    numbers = [_number(word) for word in text.split()]
    if len(numbers) != 3:
        raise ValueError(f"{text!r} is not three numbers")
    return (numbers[0], numbers[1], numbers[2])


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not a finite number")
    return number


def _positive(number: float) -> float:
    if number <= 0:
        raise ValueError(f"a size of {number:g} is not above 0")
    return number
