"""Reads kinematics in the JSON form with Denavit-Hartenberg parameters (`dhParams`). Pure.

Each entry has `id`, `parent`, `a` and `d` (mm), `alpha`, `min` and `max` (degrees), and may have a `geometry`. It is a
joint about z, followed by a link that is moved by `d` along z and by `a` along x, and turned by `alpha` about x.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from engine.components.motion.kinematics import JointType
from engine.geometry.spatial import Transform, about
from engine.geometry.sva import Chain, Joint, Link, shapes_of


def load_parameters(document: Mapping[str, Any]) -> Chain:
    """Return the chain; ValueError, KeyError or TypeError if the parameters are not valid."""
    entries: Sequence[Mapping[str, Any]] = document["dhParams"]
    by_parent: dict[str, Mapping[str, Any]] = {str(entry["parent"]): entry for entry in entries}
    names = {str(entry["id"]) for entry in entries}
    if len(names) != len(entries) or len(by_parent) != len(entries):
        raise ValueError("two entries of dhParams have the same id or the same parent")
    roots = [parent for parent in by_parent if parent not in names]
    parts: list[Link | Joint] = []
    parent = roots[0] if len(roots) == 1 else ""
    while parent in by_parent:
        entry = by_parent.pop(parent)
        parts += row(
            str(entry["id"]),
            *(float(entry.get(key, 0.0)) for key in ("a", "d", "alpha")),
            low=float(entry.get("min", -math.inf)),
            high=float(entry.get("max", math.inf)),
            geometry=entry.get("geometry"),
        )
        parent = str(entry["id"])
    if by_parent or not parts:
        raise ValueError("the entries of dhParams do not form one chain")
    return Chain(str(document.get("name", "")), tuple(parts))


def row(
    name: str, a: float, d: float, alpha: float, *, low: float, high: float, geometry: Any = None
) -> list[Link | Joint]:
    """Return the joint and the link of a row of a table of parameters (mm, degrees)."""
    if not all(map(math.isfinite, (a, d, alpha))) or not low <= high:
        raise ValueError(f"{name!r} has a number that is not finite, or min > max")
    turned = Transform(about((1.0, 0.0, 0.0), math.radians(alpha)), (a, 0.0, d))
    return [
        Joint(f"{name}_j", JointType.REVOLUTE, (0.0, 0.0, 1.0), low, high),
        Link(name, turned, shapes_of(geometry, name)),
    ]
