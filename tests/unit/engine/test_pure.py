"""Decisions and geometry, without an event loop."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.geometry.frames import FramePart, Frames, compose, invert
from engine.planning.maintenance import Answer, NoAnswer, NoWindow, decide
from engine.version import API_VERSION
from schema.errors import ErrorKind, MachineError
from schema.space.geometry import Pose, PoseInFrame

angles = st.floats(-179, 179)
lengths = st.floats(-1000, 1000)


@st.composite
def poses(draw: st.DrawFn) -> Pose:
    """Poses that point away from the poles, where longitude and theta are ambiguous."""
    latitude, longitude = math.radians(draw(st.floats(5, 175))), math.radians(draw(angles))
    direction = (
        math.sin(latitude) * math.cos(longitude),
        math.sin(latitude) * math.sin(longitude),
        math.cos(latitude),
    )
    return Pose(draw(lengths), draw(lengths), draw(lengths), *direction, draw(angles))


def values(pose: Pose) -> list[float]:
    turn = math.radians(pose.theta)
    place = [pose.x, pose.y, pose.z, pose.o_x * 1000, pose.o_y * 1000, pose.o_z * 1000]
    return [*place, math.cos(turn) * 1000, math.sin(turn) * 1000]


@given(poses())
def test_a_pose_and_its_inverse_cancel(pose: Pose) -> None:
    there = compose(pose, invert(pose))
    assert values(there)[:6] == pytest.approx([0, 0, 0, 0, 0, 1000], abs=1e-3)
    assert there.theta == pytest.approx(0, abs=1e-3)
    assert values(compose(Pose(), pose)) == pytest.approx(values(pose), abs=1e-3)


@given(poses(), poses(), poses())
def test_composition_is_associative(a: Pose, b: Pose, c: Pose) -> None:
    left, right = compose(compose(a, b), c), compose(a, compose(b, c))
    assert values(left)[:6] == pytest.approx(values(right)[:6], abs=1e-2)


def test_a_quarter_turn_by_hand() -> None:
    turned = Pose(10, 0, 0, 0, 0, 1, 90)  # the x axis of the frame points along y of its parent
    assert values(compose(turned, Pose(5, 0, 0)))[:3] == pytest.approx([10, 5, 0])
    tilted = Pose(0, 0, 0, 1, 0, 0, 0)  # the z axis of the frame points along x of its parent
    assert values(compose(tilted, Pose(0, 0, 5)))[:3] == pytest.approx([5, 0, 0])


FRAMES = Frames(
    [
        FramePart("camera", "arm_origin", Pose(0, 0, 50)),
        FramePart("arm", "table", Pose(100, 0, 0), moves=True),
        FramePart("table", "world", Pose(0, 200, 0)),
        FramePart("lost", "nowhere"),
        FramePart("a", "b"),
        FramePart("b", "a"),
    ]
)


def test_a_pose_from_frame_to_frame() -> None:
    seen = FRAMES.transform(PoseInFrame("camera", Pose(1, 2, 3)), "table")
    assert seen.reference_frame == "table"
    assert values(seen.pose)[:3] == pytest.approx([101, 2, 53])
    back = FRAMES.transform(seen, "camera")
    assert values(back.pose)[:3] == pytest.approx([1, 2, 3])


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("arm", ErrorKind.UNSUPPORTED, "arm_origin"),
        ("lost", ErrorKind.NOT_FOUND, "nowhere"),
        ("nobody", ErrorKind.NOT_FOUND, "known frames"),
        ("a", ErrorKind.PRECONDITION, "cycle"),
    ],
)
def test_frames_that_cannot_be_followed_are_refused(name: str, kind: ErrorKind, words: str) -> None:
    with pytest.raises(MachineError, match=words) as caught:
        FRAMES.transform(PoseInFrame(name), "world")
    assert caught.value.kind is kind


def test_only_connected_frames_are_listed_parents_first() -> None:
    names = [part.name for part in FRAMES.ordered()]
    assert set(names) == {"table", "arm", "camera"}
    assert names.index("table") < names.index("arm")


@pytest.mark.parametrize(
    ("answer", "allowed"),
    [
        (NoWindow("none"), True),
        (NoAnswer("broken"), False),
        ({}, False),
        ({"ok": True}, True),
        ({"ok": False}, False),
        ({"ok": 1}, False),
        ({"ok": "true"}, False),
        ({"other": True}, False),
    ],
)
def test_maintenance(answer: Answer, allowed: bool) -> None:
    decision = decide(answer, "rdk:component:sensor/s", "ok")
    assert decision.allowed is allowed
    assert decision.reason


def test_the_api_version_is_that_of_the_pinned_messages() -> None:
    from importlib import import_module

    from rpc.api import messages

    messages.common()
    result: Any = import_module("viam.version_metadata")
    assert result.API_VERSION == API_VERSION
