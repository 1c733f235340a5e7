"""Frames, orientations and shapes."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.decoding.report import DecodingReport
from schema.space.frames import Frame, decode_frame
from schema.space.geometry import Capsule, Orientation, Pose, RectangularPrism, Sphere, Vector3
from schema.space.orientation import FORMS, to_orientation, to_quaternion


def frame(**parts: Any) -> Frame:
    report = DecodingReport()
    result = decode_frame(parts, "frame", report)
    assert (report.problems, report.warnings) == ([], [])
    assert result is not None
    return result


def problems(raw: Any) -> list[str]:
    report = DecodingReport()
    assert decode_frame(raw, "frame", report) is None
    return [problem.path for problem in report.problems]


def test_defaults() -> None:
    assert frame() == Frame("world", "", Vector3(), Orientation(), None)
    assert frame().pose == Pose()


@pytest.mark.parametrize("keys", ["xyz", "XYZ", "xYz"])
def test_translation_in_any_case(keys: str) -> None:
    x, y, z = keys
    assert frame(translation={x: 1, y: 2.5, z: -3}).pose == Pose(1, 2.5, -3)


HALF = math.sqrt(0.5)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("ov_degrees", {"x": 0, "y": 0, "z": 2, "th": 90}, (0, 0, 1, 90)),
        ("ov_radians", {"z": 1, "th": math.pi / 2}, (0, 0, 1, 90)),
        ("ov_degrees", {"x": 1, "th": 30}, (1, 0, 0, 30)),
        ("ov_degrees", {"z": -1, "th": 30}, (0, 0, -1, 30)),
        ("axis_angles", {"z": 5, "th": math.pi / 2}, (0, 0, 1, 90)),
        ("axis_angles", {"y": 1, "th": math.pi / 2}, (1, 0, 0, 0)),
        ("euler_angles", {"yaw": math.pi / 2}, (0, 0, 1, 90)),
        ("euler_angles", {"pitch": math.pi / 2}, (1, 0, 0, 0)),
        ("euler_angles", {"roll": math.pi / 2}, (0, -1, 0, 90)),
        ("quaternion", {"w": HALF, "z": HALF}, (0, 0, 1, 90)),
        ("quaternion", {"w": 1}, (0, 0, 1, 0)),
        ("quaternion", {"x": 1}, (0, 0, -1, 180)),
    ],
)
def test_forms_of_orientation(kind: str, value: dict[str, float], expected: tuple[float, ...]) -> None:
    orientation = frame(orientation={"type": kind, "value": value}).orientation
    got = (orientation.o_x, orientation.o_y, orientation.o_z)
    assert got == pytest.approx(expected[:3], abs=1e-12)
    assert (orientation.theta - expected[3] + 180) % 360 - 180 == pytest.approx(0, abs=1e-9)


def rotate(q: tuple[float, float, float, float], v: tuple[float, float, float]) -> list[float]:
    w, x, y, z = q
    matrix = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return [sum(a * b for a, b in zip(row, v, strict=True)) for row in matrix]


numbers = st.floats(-1, 1)
quaternions = st.tuples(numbers, numbers, numbers, numbers).filter(lambda q: math.hypot(*q) > 0.01)
poles = st.sampled_from(
    [(1.0, 0, 0, 0), (0, 1.0, 0, 0), (0, 0, 1.0, 0), (0, 0, 0, 1.0), (0, 1.0, 1.0, 0), (1.0, 0, 0, 1.0)]
)


@given(quaternions | poles)
def test_a_quaternion_survives_the_orientation_vector(q: tuple[float, float, float, float]) -> None:
    norm = math.hypot(*q)
    unit = tuple(part / norm for part in q)
    orientation = to_orientation(q)
    back = to_quaternion(orientation)
    assert abs(sum(a * b for a, b in zip(unit, back, strict=True))) == pytest.approx(1, abs=1e-6)
    z_axis = rotate(back, (0, 0, 1))
    assert z_axis == pytest.approx([orientation.o_x, orientation.o_y, orientation.o_z], abs=1e-6)


@given(st.sampled_from(sorted(FORMS)), st.tuples(numbers, numbers, numbers, numbers))
def test_every_form_gives_a_unit_direction_or_is_refused(kind: str, values: tuple[float, ...]) -> None:
    keys, convert = FORMS[kind]
    try:
        result = to_orientation(convert(**dict(zip(keys, values, strict=False))))
    except ValueError:
        assert kind != "euler_angles"
        return
    assert math.hypot(result.o_x, result.o_y, result.o_z) == pytest.approx(1)
    assert -360 <= result.theta <= 360


@pytest.mark.parametrize(
    ("geometry", "shape"),
    [
        ({"type": "box", "x": 1, "y": 2, "z": 3}, {"box": RectangularPrism(Vector3(1, 2, 3))}),
        ({"x": 1, "y": 2, "z": 3}, {"box": RectangularPrism(Vector3(1, 2, 3))}),
        ({"type": "sphere", "r": 2}, {"sphere": Sphere(2)}),
        ({"r": 2}, {"sphere": Sphere(2)}),
        ({"r": 2, "l": 5}, {"capsule": Capsule(2, 5)}),
        ({"type": "capsule", "r": 2, "l": 4}, {"capsule": Capsule(2, 4)}),
        ({"type": "point"}, {"sphere": Sphere(0)}),
        ({}, {"sphere": Sphere(0)}),
    ],
)
def test_shapes(geometry: dict[str, Any], shape: dict[str, Any]) -> None:
    result = frame(geometry={**geometry, "label": "g", "translation": {"X": 7}}).geometry
    assert result is not None
    assert (result.label, result.center) == ("g", Pose(x=7))
    assert {key: getattr(result, key) for key in ("box", "sphere", "capsule")} == {
        "box": None,
        "sphere": None,
        "capsule": None,
    } | shape


def test_a_mesh_is_left_out_with_a_warning() -> None:
    report = DecodingReport()
    decoded = decode_frame({"geometry": {"type": "mesh", "mesh_data": "x"}}, "frame", report)
    assert decoded == Frame()
    assert "meshes are not used" in str(report.warnings[0])


@pytest.mark.parametrize(
    ("raw", "paths"),
    [
        ([], ["frame"]),
        ({"id": "world"}, ["frame.id"]),
        ({"id": "a", "parent": "a"}, ["frame.parent"]),
        ({"parent": 1}, ["frame.parent"]),
        ({"translation": [1, 2, 3]}, ["frame.translation"]),
        ({"translation": {"x": "1", "y": True}}, ["frame.translation.x", "frame.translation.y"]),
        ({"orientation": {"type": "ov", "value": {}}}, ["frame.orientation.type"]),
        ({"orientation": {"value": {"z": 1}}}, ["frame.orientation.type"]),
        ({"orientation": {"type": "ov_degrees", "value": {"th": 1}}}, ["frame.orientation.value"]),
        ({"orientation": {"type": "quaternion"}}, ["frame.orientation.value"]),
        ({"orientation": 3}, ["frame.orientation"]),
        ({"geometry": {"type": "torus"}}, ["frame.geometry.type"]),
        ({"geometry": {"r": -1}}, ["frame.geometry.r"]),
        ({"geometry": {"r": 2, "l": 3}}, ["frame.geometry"]),
        ({"geometry": {"x": "1"}}, ["frame.geometry.x"]),
        ({"geometry": "box"}, ["frame.geometry"]),
    ],
)
def test_mistakes(raw: Any, paths: list[str]) -> None:
    assert problems(raw) == paths
