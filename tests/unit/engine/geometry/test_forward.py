"""Forward kinematics from drivers' descriptions, compared with that of the simulated arm."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.components.motion.kinematics import (
    AxisAngles,
    EulerAngles,
    JointType,
    KinematicJoint,
    KinematicLink,
    KinematicModel,
    Kinematics,
    KinematicsFormat,
    LinkPose,
    MimicJoint,
    Quaternion,
)
from engine.geometry.chain import SIX_AXIS, forward_kinematics
from engine.geometry.forward import model_of, output
from engine.geometry.sva import dump, kinematics, sliding
from schema.errors import ConfigError, ErrorKind, MachineError
from schema.space.geometry import Orientation, Pose, Vector3

HALF = math.sqrt(0.5)


def place(pose: Pose) -> tuple[float, ...]:
    return (pose.x, pose.y, pose.z)


def close(item: Pose, other: Pose) -> None:
    assert (*place(item), item.o_x, item.o_y, item.o_z) == pytest.approx(
        (*place(other), other.o_x, other.o_y, other.o_z), abs=1e-6
    )


@given(st.lists(st.floats(-120, 120), min_size=6, max_size=6))
def test_an_arm_is_where_its_own_kinematics_say(positions: list[float]) -> None:
    expected = forward_kinematics(SIX_AXIS, positions).pose()
    reported = kinematics(SIX_AXIS)
    close(output(model_of(reported), positions), expected)
    only_text = Kinematics(KinematicsFormat.SVA, dump(SIX_AXIS))
    close(output(model_of(only_text), positions), expected)


@given(st.lists(st.floats(0, 500), min_size=3, max_size=3))
def test_a_gantry_slides_along_its_axes(positions: list[float]) -> None:
    model = model_of(sliding("gantry", ("x", "y", "z"), (500, 500, 500)))
    assert place(output(model, positions)) == pytest.approx(positions)


UP = Vector3(0, 0, 1)


def joint(name: str, parent: str, *, axis: Vector3 = UP, mimic: MimicJoint | None = None) -> KinematicJoint:
    return KinematicJoint(name, parent, JointType.REVOLUTE, axis, None, mimic)


def link(name: str, parent: str, pose: LinkPose) -> KinematicLink:
    return KinematicLink(name, parent, pose)


ALONG_X = LinkPose(Vector3(10, 0, 0))


@pytest.mark.parametrize(
    ("pose", "expected"),
    [
        (LinkPose(), (1, 2, 3)),
        (LinkPose(Vector3(10, 20, 30)), (11, 22, 33)),
        (LinkPose(quaternion=Quaternion(HALF, 0, 0, HALF)), (-2, 1, 3)),
        (LinkPose(orientation_vector=Orientation(0, 0, 1, 90)), (-2, 1, 3)),
        (LinkPose(orientation_vector=Orientation(0, 0, 0, 90)), (-2, 1, 3)),
        (LinkPose(euler_angles=EulerAngles(yaw=math.pi / 2)), (-2, 1, 3)),
        (LinkPose(axis_angles=AxisAngles(0, 0, 2, math.pi / 2)), (-2, 1, 3)),
        (LinkPose(axis_angles=AxisAngles(0, 0, 0, 1)), (1, 2, 3)),
    ],
)
def test_every_way_of_writing_a_link(pose: LinkPose, expected: Sequence[float]) -> None:
    model = KinematicModel("m", [link("l", "world", pose), link("end", "l", LinkPose(Vector3(1, 2, 3)))])
    assert place(output(model, [])) == pytest.approx(expected)


def test_a_joint_that_follows_another_needs_no_position() -> None:
    joints = [joint("a", "world"), joint("b", "arm", mimic=MimicJoint("a", 2.0, 10.0))]
    model = KinematicModel("m", [link("arm", "a", ALONG_X), link("end", "b", ALONG_X)], joints)
    angle = math.radians(20 + 2 * 20 + 10)
    expected = (
        10 * math.cos(math.radians(20)) + 10 * math.cos(angle),
        10 * math.sin(math.radians(20)) + 10 * math.sin(angle),
        0,
    )
    assert place(output(model, [20])) == pytest.approx(expected)


def test_the_output_frame_is_the_named_one_or_the_only_end() -> None:
    links = [
        link("base", "world", ALONG_X),
        link("left", "base", ALONG_X),
        link("tool", "base", LinkPose(Vector3(0, 5, 0))),
    ]
    assert place(output(KinematicModel("m", links, [], ["tool"]), [])) == pytest.approx((10, 5, 0))
    with pytest.raises(MachineError, match="2 ends instead of one: left, tool") as caught:
        output(KinematicModel("m", links), [])
    assert caught.value.kind is ErrorKind.PRECONDITION
    assert output(KinematicModel("nothing"), []) == Pose()


def test_disconnected_kinematics_are_refused() -> None:
    circle = KinematicModel("m", [link("a", "b", ALONG_X), link("b", "a", ALONG_X)], [], ["a"])
    with pytest.raises(MachineError, match="form a cycle"):
        output(circle, [])
    with pytest.raises(MachineError, match="2 joint positions for the 1 joints"):
        output(KinematicModel("m", [], [joint("a", "world")]), [1, 2])
    with pytest.raises(MachineError, match="'a' has no axis"):
        output(KinematicModel("m", [], [joint("a", "world", axis=Vector3())]), [1])


def test_formats_that_are_not_read() -> None:
    with pytest.raises(MachineError, match="format URDF are not supported") as caught:
        model_of(Kinematics(KinematicsFormat.URDF, b"<robot/>"))
    assert caught.value.kind is ErrorKind.UNSUPPORTED
    with pytest.raises(ConfigError, match="kinematics_data"):
        model_of(Kinematics(KinematicsFormat.SVA, b"nonsense"))
