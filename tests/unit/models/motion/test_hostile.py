"""Hostile requests end with a clear error, in bounded time, and leave the arm where it is."""

from __future__ import annotations

import time
from typing import Any

import pytest
from trio.testing import MockClock

from schema.errors import ErrorKind, MachineError
from tests.unit.models.motion.support import at, opened

NAN = float("nan")
INF = float("inf")


def obstacles(*shapes: dict[str, Any], frame: str = "world") -> dict[str, Any]:
    return {"obstacles": [{"reference_frame": frame, "geometries": list(shapes)}]}


def transform(name: str, parent: str, **pose: float) -> dict[str, Any]:
    return {"reference_frame": name, "pose_in_observer_frame": {"reference_frame": parent, "pose": {"o_z": 1, **pose}}}


BALL = {"sphere": {"radius_mm": 50}, "center": {"z": 2000, "o_z": 1}}
GOOD = at(-400, -300, 300)

REQUESTS: dict[str, tuple[dict[str, Any], ErrorKind, str]] = {
    "nan in the destination": ({"destination": at(NAN, 0, 0)}, ErrorKind.INVALID, "x is nan"),
    "infinite destination": ({"destination": at(0, INF, 0)}, ErrorKind.INVALID, "y is inf"),
    "nan in the orientation": ({"destination": at(0, 0, 0, theta=NAN)}, ErrorKind.INVALID, "theta is nan"),
    "far destination": ({"destination": at(1e30, 0, 0)}, ErrorKind.INVALID, "1e\\+30"),
    "unknown frame": ({"destination": at(0, 0, 0, "x" * 10_000)}, ErrorKind.NOT_FOUND, "no frame"),
    "negative radius": (
        {"world_state": obstacles({"sphere": {"radius_mm": -1}})},
        ErrorKind.INVALID,
        "obstacle 1: a size of -1",
    ),
    "nan radius": ({"world_state": obstacles({"sphere": {"radius_mm": NAN}})}, ErrorKind.INVALID, "a size of nan"),
    "nan box": (
        {"world_state": obstacles({"box": {"dims_mm": {"x": 1, "y": NAN, "z": 1}}})},
        ErrorKind.INVALID,
        "a size of nan",
    ),
    "short capsule": (
        {"world_state": obstacles({"capsule": {"radius_mm": 50, "length_mm": 20}})},
        ErrorKind.INVALID,
        "less than its diameter",
    ),
    "no shape": ({"world_state": obstacles({"label": "ghost"})}, ErrorKind.INVALID, "ghost has no shape"),
    "nan center": (
        {"world_state": obstacles({**BALL, "center": {"x": NAN}})},
        ErrorKind.INVALID,
        "x is nan",
    ),
    "obstacle in an unknown frame": ({"world_state": obstacles(BALL, frame="moon")}, ErrorKind.NOT_FOUND, "moon"),
    "long label": (
        {"world_state": obstacles({**BALL, "label": "x" * 1000})},
        ErrorKind.INVALID,
        "more than 200 characters",
    ),
    "many obstacles": ({"world_state": obstacles(*[BALL] * 20_000)}, ErrorKind.EXHAUSTED, "20000 obstacles"),
    "many transforms": (
        {"world_state": {"transforms": [transform(f"f{i}", "world") for i in range(5000)]}},
        ErrorKind.EXHAUSTED,
        "5000 transforms",
    ),
    "a frame in itself": (
        {"world_state": {"transforms": [transform("a", "a")]}, "destination": at(0, 0, 0, "a")},
        ErrorKind.PRECONDITION,
        "cycle",
    ),
    "frames in a circle": (
        {
            "world_state": {"transforms": [transform("a", "b"), transform("b", "c"), transform("c", "a")]},
            "destination": at(0, 0, 0, "b"),
        },
        ErrorKind.PRECONDITION,
        "cycle",
    ),
    "a frame named world": ({"world_state": {"transforms": [transform("world", "arm1")]}}, ErrorKind.INVALID, "world"),
    "an object that is a mesh": (
        {"world_state": {"transforms": [{**transform("a", "grip"), "physical_object": {"label": "mesh"}}]}},
        ErrorKind.INVALID,
        "mesh has no shape",
    ),
    "a frame without a name": ({"world_state": {"transforms": [transform("", "arm1")]}}, ErrorKind.INVALID, "name"),
    "nan in a transform": (
        {"world_state": {"transforms": [transform("a", "world", x=NAN)]}},
        ErrorKind.INVALID,
        "x is nan",
    ),
    "nan tolerance": (
        {"constraints": {"linear_constraint": [{"line_tolerance_mm": NAN}]}},
        ErrorKind.INVALID,
        "linear_constraint.0.line_tolerance_mm is nan",
    ),
    "negative tolerance": (
        {"constraints": {"orientation_constraint": [{"orientation_tolerance_degs": -5.0}]}},
        ErrorKind.INVALID,
        "orientation_tolerance_degs is -5",
    ),
    "unknown pair": (
        {"constraints": {"collision_specification": [{"allows": [{"frame1": "moon", "frame2": "arm1"}]}]}},
        ErrorKind.INVALID,
        "moon",
    ),
    "many pairs": (
        {"constraints": {"collision_specification": [{"allows": [{"frame1": "arm1", "frame2": "grip"}] * 5000}]}},
        ErrorKind.EXHAUSTED,
        "5000 pairs",
    ),
    "nan option": ({"extra": {"timeout": NAN}}, ErrorKind.INVALID, "extra.timeout"),
    "huge option": ({"extra": {"timeout": 1e9}}, ErrorKind.INVALID, "0.1 to 60"),
    "text option": ({"extra": {"rseed": "x" * 10_000}}, ErrorKind.INVALID, "extra.rseed"),
}


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_hostile_request_is_refused(name: str, autojump_clock: MockClock) -> None:
    request, kind, match = REQUESTS[name]
    async with opened() as rig:
        before = await rig.arm("get_joint_positions")
        began = time.process_time()
        with pytest.raises(MachineError, match=match) as caught:
            await rig.call("move", component_name="grip", **{"destination": GOOD, **request})
        assert time.process_time() - began < 5
        assert caught.value.kind is kind
        assert len(caught.value.message) < 12_000
        assert await rig.arm("get_joint_positions") == before
        assert await rig.call("move", component_name="grip", destination=GOOD)


async def test_a_thousand_obstacles_are_accepted(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        assert await rig.call("move", component_name="grip", destination=GOOD, world_state=obstacles(*[BALL] * 900))
        assert len(rig.planner.problems[-1].solids) > 900


async def test_poses_with_many_or_bad_transforms_are_refused(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        for transforms, match in (
            ([transform(f"f{i}", "world") for i in range(500)], "500 transforms"),
            ([transform("a", "a")], "cycle"),
            ([transform("a", "world", y=INF)], "y is inf"),
        ):
            with pytest.raises(MachineError, match=match):
                await rig.call(
                    "get_pose", component_name="a", destination_frame="world", supplemental_transforms=transforms
                )
