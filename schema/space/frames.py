"""Decoding of component frames: pose and shape of a component relative to its parent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from schema.decoding.conversion import wrong_type
from schema.decoding.report import DecodingReport, did_you_mean, join, shown
from schema.space.geometry import Capsule, Geometry, Orientation, Pose, RectangularPrism, Sphere, Vector3
from schema.space.orientation import FORMS, to_orientation

WORLD: Final = "world"

_FRAME_KEYS: Final = ("id", "parent", "translation", "orientation", "geometry")
_GEOMETRY_TYPES: Final = ("box", "sphere", "capsule", "point", "mesh")
_MESH_KEYS: Final = ("mesh_data", "mesh_content_type", "mesh_file_path")
_GEOMETRY_KEYS: Final = ("type", "x", "y", "z", "r", "l", "label", "translation", "orientation", *_MESH_KEYS)


@dataclass(frozen=True, slots=True)
class Frame:
    """Coordinate system relative to its parent: a translation in mm, then a rotation of its axes."""

    parent: str = WORLD
    """Name of the parent frame."""
    id: str = ""
    """Name of the frame; empty means the name of the resource."""
    translation: Vector3 = field(default_factory=Vector3)
    """Position of the origin in the parent, in mm."""
    orientation: Orientation = field(default_factory=Orientation)
    """Orientation in the parent, converted from any form in the document."""
    geometry: Geometry | None = None
    """Shape of the component in this frame."""

    @property
    def pose(self) -> Pose:
        """Pose with translation and orientation."""
        return _pose(self.translation, self.orientation)


def _pose(position: Vector3, rotation: Orientation) -> Pose:
    return Pose(position.x, position.y, position.z, rotation.o_x, rotation.o_y, rotation.o_z, rotation.theta)


def decode_frame(raw: Any, path: str, report: DecodingReport) -> Frame | None:
    """Decode a `frame` object; None if a problem was reported."""
    if not isinstance(raw, Mapping):
        wrong_type(raw, "an object", path, report)
        return None
    before = len(report.problems)
    for key in raw.keys() - set(_FRAME_KEYS):
        report.unknown_key(path, key, _FRAME_KEYS, value=raw[key])
    frame = Frame(
        parent=_text(raw, "parent", path, report) or WORLD,
        id=_text(raw, "id", path, report),
        translation=_vector(raw.get("translation"), join(path, "translation"), report),
        orientation=_orientation(raw.get("orientation"), join(path, "orientation"), report),
        geometry=_geometry(raw.get("geometry"), join(path, "geometry"), report),
    )
    if frame.id == WORLD:
        report.problem(
            join(path, "id"), "'world' is the root of all frames", value=frame.id, remedy="choose another id"
        )
    elif frame.id and frame.id == frame.parent:
        report.problem(
            join(path, "parent"), "the frame is its own parent", value=frame.parent, remedy="name another frame"
        )
    return frame if len(report.problems) == before else None


def _text(raw: Mapping[str, Any], key: str, path: str, report: DecodingReport) -> str:
    value = raw.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        wrong_type(value, "a string", join(path, key), report)
        return ""
    return value


def _numbers(raw: Any, keys: tuple[str, ...], path: str, report: DecodingReport) -> dict[str, float]:
    """Return the numbers of `keys`, ignoring case; missing keys are zero."""
    result = dict.fromkeys(keys, 0.0)
    if raw is None:
        return result
    if not isinstance(raw, Mapping):
        wrong_type(raw, "an object", path, report)
        return result
    for key, value in raw.items():
        if key.lower() not in result:
            report.unknown_key(path, key, keys, value=value)
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            wrong_type(value, "a number", join(path, key), report)
        else:
            result[key.lower()] = float(value)
    return result


def _vector(raw: Any, path: str, report: DecodingReport) -> Vector3:
    return Vector3(**_numbers(raw, ("x", "y", "z"), path, report))


def _orientation(raw: Any, path: str, report: DecodingReport) -> Orientation:
    if raw is None:
        return Orientation()
    if not isinstance(raw, Mapping):
        wrong_type(raw, "an object", path, report)
        return Orientation()
    for key in raw.keys() - {"type", "value"}:
        report.unknown_key(path, key, ("type", "value"), value=raw[key])
    kind = _text(raw, "type", path, report)
    if not kind and raw.get("value") is None:
        return Orientation()
    if kind not in FORMS:
        report.problem(
            join(path, "type"), f"{shown(kind, path)} is not an orientation", remedy=did_you_mean(kind, FORMS)
        )
        return Orientation()
    keys, convert = FORMS[kind]
    before = len(report.problems)
    values = _numbers(raw.get("value"), keys, join(path, "value"), report)
    if len(report.problems) > before:
        return Orientation()
    try:
        return to_orientation(convert(**values))
    except ValueError as error:
        report.problem(
            join(path, "value"), str(error), value=raw.get("value"), remedy="give a direction, or leave it out"
        )
        return Orientation()


def _geometry(raw: Any, path: str, report: DecodingReport) -> Geometry | None:
    if raw is None:
        return None
    if not isinstance(raw, Mapping):
        wrong_type(raw, "an object", path, report)
        return None
    for key in raw.keys() - set(_GEOMETRY_KEYS):
        report.unknown_key(path, key, _GEOMETRY_KEYS, value=raw[key])
    sizes = _numbers(
        {k: raw[k] for k in ("x", "y", "z", "r", "l") if raw.get(k) is not None},
        ("x", "y", "z", "r", "l"),
        path,
        report,
    )
    for key, size in sizes.items():
        if size < 0:
            report.problem(join(path, key), f"{size:g} is negative", value=size, remedy="write a length in mm")
    center = _pose(
        _vector(raw.get("translation"), join(path, "translation"), report),
        _orientation(raw.get("orientation"), join(path, "orientation"), report),
    )
    kind = _text(raw, "type", path, report) or _guess(raw, sizes)
    label = _text(raw, "label", path, report)
    dims = Vector3(sizes["x"], sizes["y"], sizes["z"])
    if kind == "box":
        return Geometry(center, box=RectangularPrism(dims), label=label)
    if kind in {"sphere", "point"}:
        return Geometry(center, sphere=Sphere(sizes["r"] if kind == "sphere" else 0.0), label=label)
    if kind == "capsule":
        if sizes["l"] < 2 * sizes["r"]:
            report.problem(
                path,
                "the length of the capsule is less than its diameter",
                value=sizes["l"],
                remedy="l is the total length, at least 2 r",
            )
        return Geometry(center, capsule=Capsule(sizes["r"], sizes["l"]), label=label)
    if kind == "mesh":
        report.warn(
            path, "meshes are not used; the component has no shape", remedy="describe it by a box, sphere or capsule"
        )
        return None
    report.problem(
        join(path, "type"),
        f"{shown(kind, path)} is not a shape",
        value=kind,
        remedy=did_you_mean(kind, _GEOMETRY_TYPES),
    )
    return None


def _guess(raw: Mapping[str, Any], sizes: Mapping[str, float]) -> str:
    """Infer the shape type from the given keys when `type` is absent."""
    if any(raw.get(key) for key in _MESH_KEYS):
        return "mesh"
    if sizes["x"] or sizes["y"] or sizes["z"]:
        return "box"
    if sizes["l"]:
        return "capsule"
    return "sphere" if sizes["r"] else "point"
