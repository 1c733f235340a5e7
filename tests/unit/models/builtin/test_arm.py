"""Arms: forward and inverse kinematics agree, limits hold, files are read."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from engine.components.motion.arm import MoveOptions, TrajectoryPoint
from engine.components.motion.kinematics import KinematicsFormat
from engine.geometry.chain import SIX_AXIS, forward_kinematics
from engine.geometry.spatial import (
    Transform,
    about,
    from_orientation,
    multiply,
    rotation_vector,
    to_orientation,
    transpose,
)
from engine.geometry.sva import dump, load
from engine.resource import Unsupported
from schema.errors import ConfigError, ErrorKind, MachineError
from schema.space.geometry import Pose
from tests.unit.models.builtin.support import Bench

angles = st.tuples(*(st.floats(max(j.low, -170), min(j.high, 170)) for j in SIX_AXIS.joints))


def apart(item: Transform, other: Transform) -> tuple[float, float]:
    turn = rotation_vector(multiply(transpose(item.rotation), other.rotation))
    return math.dist(item.translation, other.translation), math.hypot(*turn)


def test_straight_up_the_flange_is_as_high_as_the_links_are_long() -> None:
    end = forward_kinematics(SIX_AXIS, [0.0] * 6)
    assert end.translation == pytest.approx((0, 0, 990))
    assert to_orientation(end.rotation).o_z == pytest.approx(1)


def test_bent_forward_it_reaches_along_x() -> None:
    end = forward_kinematics(SIX_AXIS, [0, 90, 0, 0, 0, 0])
    assert end.translation == pytest.approx((740, 0, 250), abs=1e-9)
    assert end.pose().o_x == pytest.approx(1)


@given(angles)
def test_a_pose_survives_the_wire(values: tuple[float, ...]) -> None:
    end = forward_kinematics(SIX_AXIS, values)
    assert apart(end, Transform.of(end.pose())) == pytest.approx((0, 0), abs=1e-5)


@given(st.floats(-3, 3), st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda v: math.hypot(*v) > 0.1))
def test_a_rotation_vector_is_its_axis_and_angle(angle: float, axis: tuple[float, float, float]) -> None:
    vector = rotation_vector(about(axis, angle))
    assert math.hypot(*vector) == pytest.approx(abs(angle), abs=1e-5)
    assert apart(Transform(about(vector, math.hypot(*vector))), Transform(about(axis, angle)))[1] < 1e-5


def test_half_a_turn_has_an_axis() -> None:
    for axis in ((1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0)):
        vector = rotation_vector(about(axis, math.pi))
        assert math.hypot(*vector) == pytest.approx(math.pi)


def test_an_unset_orientation_means_none() -> None:
    assert from_orientation(to_orientation(about((0, 0, 1), 0.0))) == Transform.of(Pose(o_z=0.0)).rotation


def test_kinematics_survive_their_file() -> None:
    assert load(dump(SIX_AXIS), "p") == SIX_AXIS
    document = json.loads(dump(SIX_AXIS))
    assert document["kinematic_param_type"] == "SVA"
    assert document["links"][0]["parent"] == "waist"
    assert document["joints"][0] == {
        "id": "waist",
        "type": "revolute",
        "parent": "world",
        "axis": {"x": 0, "y": 0, "z": 1},
        "min": -360,
        "max": 360,
    }


@pytest.mark.parametrize(
    "data",
    [
        b"no json",
        b"[]",
        b'{"links": [{"id": "a"}]}',
        b'{"links": [{"id": "a", "parent": "world"}, {"id": "b", "parent": "nowhere"}]}',
        b'{"links": [], "joints": [{"id": "a", "parent": "world", "type": "odd", "axis": {"z": 1}}]}',
        b'{"links": [{"id": "a", "parent": "world", "orientation": {"type": "odd", "value": {}}}]}',
    ],
)
def test_a_broken_kinematics_file_is_an_error_with_its_path(data: bytes) -> None:
    with pytest.raises(ConfigError) as caught:
        load(data, "attributes.model-path")
    assert caught.value.path == "attributes.model-path"


async def test_it_moves_to_poses_and_back(bench: Bench, autojump_clock: MockClock) -> None:
    arm = await bench.add("arm")
    home = await arm.get_end_position()
    joints = await arm.get_joint_positions()
    goal = Pose(300, 200, 400, 0, 0, -1, 30)
    await arm.move_to_position(goal)
    way, turn = apart(Transform.of(await arm.get_end_position()), Transform.of(goal))
    assert way < 0.1
    assert turn < 0.01
    await arm.move_to_joint_positions(joints)
    assert await arm.get_end_position() == home


async def test_unreachable_positions_are_refused_before_the_arm_moves(bench: Bench, autojump_clock: MockClock) -> None:
    arm = await bench.add("arm")
    before = await arm.get_joint_positions()
    for call in (
        lambda: arm.move_to_position(Pose(5000, 0, 0)),
        lambda: arm.move_to_position(Pose(float("nan"), 0, 0)),
        lambda: arm.move_to_joint_positions([0, 0, 0, 0, 0, 500]),
        lambda: arm.move_to_joint_positions([0, 0]),
        lambda: arm.move_through_joint_positions([[0] * 6, [0, 0, 0, 0, 0, 500]]),
    ):
        with pytest.raises(MachineError) as caught:
            await call()
        assert caught.value.kind is ErrorKind.INVALID
    assert await arm.get_joint_positions() == before


async def test_speeds_are_kept(bench: Bench, autojump_clock: MockClock) -> None:
    arm = await bench.add("arm")
    await arm.move_to_joint_positions([0.0] * 6)
    begin = trio.current_time()
    await arm.move_through_joint_positions([[45.0] + [0.0] * 5, [90.0] + [0.0] * 5], MoveOptions(10))
    assert trio.current_time() - begin == pytest.approx(9)
    begin = trio.current_time()
    slow = MoveOptions(max_vel_degs_per_sec_joints=[30.0] * 6)
    await arm.move_through_joint_positions([[0.0] * 6], slow)
    assert trio.current_time() - begin == pytest.approx(3)


async def test_a_streamed_trajectory_is_on_time(bench: Bench, autojump_clock: MockClock) -> None:
    arm = await bench.add("arm")
    await arm.move_to_joint_positions([0.0] * 6)
    send, receive = trio.open_memory_channel[list[TrajectoryPoint]](3)
    for n in (1, 2, 3):
        send.send_nowait([TrajectoryPoint(timedelta(seconds=n), [10.0 * n] + [0.0] * 5)])
    send.close()
    begin = trio.current_time()
    acknowledged = [trio.current_time() - begin async for _ in arm.move_through_joint_positions_streamed(receive)]
    assert acknowledged == pytest.approx([1, 2, 3])
    assert (await arm.get_joint_positions())[0] == pytest.approx(30)


async def test_its_kinematics_are_a_file_and_a_structure(bench: Bench, autojump_clock: MockClock) -> None:
    arm = await bench.add("arm")
    answer = await arm.get_kinematics()
    assert answer.format is KinematicsFormat.SVA
    assert load(answer.kinematics_data, "p") == SIX_AXIS
    assert answer.model is not None
    assert [joint.id for joint in answer.model.joints] == [joint.id for joint in SIX_AXIS.joints]


async def test_a_file_gives_another_arm(bench: Bench, autojump_clock: MockClock, tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    path.write_text(
        json.dumps(
            {
                "name": "two",
                "links": [
                    {"id": "l1", "parent": "j1", "translation": {"X": 0, "Y": 0, "Z": 100}},
                    {
                        "id": "base",
                        "parent": "world",
                        "orientation": {"type": "euler_angles", "value": {"pitch": math.pi / 2}},
                    },
                ],
                "joints": [
                    {"id": "j1", "type": "revolute", "parent": "base", "axis": {"z": 1}, "min": -90, "max": 90},
                    {"id": "j2", "type": "prismatic", "parent": "l1", "axis": {"z": 1}, "min": 0, "max": 50},
                ],
            }
        )
    )
    arm = await bench.add("arm", "it", {"model-path": str(path)})
    await arm.move_to_joint_positions([0, 20])
    end = await arm.get_end_position()
    assert (end.x, end.y, end.z) == pytest.approx((120, 0, 0), abs=1e-9)


@pytest.mark.parametrize(
    "options", [MoveOptions(max_acc_degs_per_sec2=1.0), MoveOptions(max_acc_degs_per_sec2_joints=[1.0] * 6)]
)
async def test_a_ceiling_of_acceleration_is_refused_before_anything_moves(
    bench: Bench, autojump_clock: MockClock, options: MoveOptions
) -> None:
    arm = await bench.add("arm")
    before = await arm.get_joint_positions()
    with pytest.raises(Unsupported, match="acceleration"):
        await arm.move_through_joint_positions([[0.0] * 6], options)
    assert await arm.get_joint_positions() == before


async def test_others_run_between_the_steps_of_a_hopeless_search(bench: Bench, autojump_clock: MockClock) -> None:
    arm = await bench.add("arm")
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        with pytest.raises(MachineError, match="out of reach"):
            await arm.move_to_position(Pose(500, 0, -600, 0, 0, 1, 0))
        nursery.cancel_scope.cancel()
    assert turns > 500


async def test_a_name_gives_another_arm(bench: Bench, autojump_clock: MockClock) -> None:
    arm = await bench.add("arm", attributes={"arm-model": "xarm7"})
    assert list(await arm.get_joint_positions()) == [0.0] * 7
    end = await arm.get_end_position()
    assert (end.x, end.z) == pytest.approx((206.0, 120.5))
    labels = [shape.label for shape in await arm.get_geometries()]
    assert labels[0] == "it:base"
    other = await bench.add("arm", "other", {"arm-model": "never built"})
    assert len(await other.get_joint_positions()) == 6


async def test_its_shapes_move_with_it(bench: Bench, autojump_clock: MockClock) -> None:
    arm = await bench.add("arm")
    await arm.move_to_joint_positions([0.0] * 6)
    upright = (await arm.get_geometries())[-1]
    assert (upright.center.x, upright.center.z) == pytest.approx((0.0, 850 + 52.5))
    await arm.move_to_joint_positions([0.0, 90.0, 0.0, 0.0, 0.0, 0.0])
    forward_bent = (await arm.get_geometries())[-1]
    assert (forward_bent.center.x, forward_bent.center.z) == pytest.approx((600 + 52.5, 250))
