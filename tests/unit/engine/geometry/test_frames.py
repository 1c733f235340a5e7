"""Moving frames: which joints are required, and poses that depend on them."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.geometry.frames import FramePart, Frames, compose, frames_of_document, invert
from schema.document.machine import decode_document
from schema.errors import ErrorKind, MachineError
from schema.space.geometry import Pose, PoseInFrame

FRAMES = Frames(
    [
        FramePart("table", "world", Pose(0, 200, 0)),
        FramePart("gantry", "table", Pose(0, 0, 10), moves=True, resource="g"),
        FramePart("arm", "gantry", Pose(100, 0, 0), moves=True, resource="a"),
        FramePart("camera", "arm", Pose(0, 0, 50)),
        FramePart("base_camera", "arm_origin", Pose(0, 0, 5)),
    ],
    remotes=["lab", "far"],
    unplaced=["sensor"],
)
MOVED = {"gantry": Pose(1, 2, 3), "arm": Pose(0, 0, 300, 1, 0, 0, 0)}  # the z axis of the arm points along x


def values(pose: Pose) -> tuple[float, ...]:
    return (pose.x, pose.y, pose.z, pose.o_x, pose.o_y, pose.o_z)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("world",), []),
        (("", "table"), []),
        (("gantry_origin",), []),
        (("gantry",), ["gantry"]),
        (("arm_origin",), ["gantry"]),
        (("arm",), ["arm", "gantry"]),
        (("camera", "base_camera"), ["arm", "gantry"]),
    ],
)
def test_only_the_joints_on_the_way_must_be_known(names: tuple[str, ...], expected: list[str]) -> None:
    assert sorted(part.name for part in FRAMES.moving(*names)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gantry_origin", (0, 200, 10, 0, 0, 1)),
        ("gantry", (1, 202, 13, 0, 0, 1)),
        ("arm_origin", (101, 202, 13, 0, 0, 1)),
        ("arm", (101, 202, 313, 1, 0, 0)),
        ("camera", (151, 202, 313, 1, 0, 0)),
        ("base_camera", (101, 202, 18, 0, 0, 1)),
    ],
)
def test_poses_in_the_world(name: str, expected: tuple[float, ...]) -> None:
    transformed = FRAMES.transform(PoseInFrame(name), "world", MOVED)
    assert values(transformed.pose) == pytest.approx(expected)


def test_from_one_moving_frame_to_another() -> None:
    transformed = FRAMES.transform(PoseInFrame("camera", Pose(0, 0, 7)), "gantry", MOVED)
    assert values(transformed.pose) == pytest.approx((157, 0, 300, 1, 0, 0))
    still = FRAMES.transform(PoseInFrame("camera"), "arm", MOVED)
    assert values(still.pose)[:3] == pytest.approx((0, 0, 50))


def test_a_moving_frame_without_a_model_is_refused() -> None:
    with pytest.raises(MachineError, match="frame 'arm' moves with its joints") as caught:
        FRAMES.transform(PoseInFrame("camera"), "world", {"gantry": Pose()})
    assert caught.value.kind is ErrorKind.UNSUPPORTED
    assert "arm_origin" in caught.value.remedy


@pytest.mark.parametrize("name", ["lab:arm", "far_world"])
def test_frames_of_remotes_are_refused_with_their_name(name: str) -> None:
    with pytest.raises(MachineError, match="belongs to the remote") as caught:
        FRAMES.moving(name)
    assert caught.value.kind is ErrorKind.UNSUPPORTED
    assert caught.value.remedy in ("request the transform from lab itself", "request the transform from far itself")


def test_the_error_for_a_component_without_a_frame_says_how_to_add_one() -> None:
    with pytest.raises(MachineError, match="configure a frame for sensor") as caught:
        FRAMES.moving("sensor")
    assert caught.value.kind is ErrorKind.NOT_FOUND
    with pytest.raises(MachineError) as other:
        FRAMES.with_parts([]).moving("nobody")
    assert "give" not in other.value.remedy


def test_supplemental_frames_may_stand_on_what_moves() -> None:
    frames = FRAMES.with_parts([FramePart("cup", "camera", Pose(0, 0, 20)), FramePart("table", "world", Pose(0, 0, 0))])
    assert [part.name for part in frames.moving("cup")] == ["arm", "gantry"]
    assert values(frames.transform(PoseInFrame("cup"), "world", MOVED).pose) == pytest.approx((171, 2, 313, 1, 0, 0))


def test_parts_of_a_document() -> None:
    document = {
        "components": [
            {"api": "rdk:component:arm", "name": "a", "model": "fake", "frame": {"parent": "world"}},
            {"api": "rdk:component:camera", "name": "c", "model": "fake", "frame": {"parent": "a", "id": "eye"}},
            {"api": "rdk:component:sensor", "name": "s", "model": "fake"},
        ],
        "remotes": [{"name": "lab", "address": "localhost:1"}],
    }
    decoded = decode_document(json.dumps(document).encode())
    assert decoded.document is not None
    result = frames_of_document(decoded.document)
    assert [(item.name, item.parent, item.moves, item.resource) for item in result.ordered()] == [
        ("a", "world", True, "rdk:component:arm/a"),
        ("eye", "a", False, "rdk:component:camera/c"),
    ]
    assert [result.frame_of(name) for name in ("a", "c", "eye", "s", "")] == ["a", "eye", "eye", "s", ""]
    with pytest.raises(MachineError, match="remote 'lab'"):
        result.moving("lab:x")
    with pytest.raises(MachineError, match="configure a frame for s"):
        result.moving("s")


numbers = st.floats(-1000, 1000)
turns = st.floats(-1, 1)
poses = st.builds(Pose, numbers, numbers, numbers, turns, turns, turns, st.floats(-180, 180)).filter(
    lambda pose: math.hypot(pose.o_x, pose.o_y, pose.o_z) > 0.1
)


@given(poses, poses, poses)
def test_there_and_back_through_joints(gantry: Pose, arm: Pose, asked: Pose) -> None:
    moved = {"gantry": gantry, "arm": arm}
    there = FRAMES.transform(PoseInFrame("camera", asked), "base_camera", moved)
    back = FRAMES.transform(there, "camera", moved)
    point = compose(asked, Pose(10, 20, 30))
    again = compose(back.pose, Pose(10, 20, 30))
    assert values(again)[:3] == pytest.approx(values(point)[:3], abs=1e-5)
    assert values(compose(invert(asked), asked))[:3] == pytest.approx((0, 0, 0), abs=1e-8)
