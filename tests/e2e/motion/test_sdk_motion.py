"""The motion service of machine-server through the MotionClient of the unmodified official Python SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from grpclib import GRPCError, Status
from viam.components.arm import Arm
from viam.proto.common import (
    GeometriesInFrame,
    Geometry,
    Pose,
    PoseInFrame,
    RectangularPrism,
    Sphere,
    Transform,
    Vector3,
    WorldState,
)
from viam.proto.component.arm import JointPositions
from viam.proto.service.motion import Constraints, LinearConstraint, PlanState
from viam.robot.client import RobotClient
from viam.services.motion import MotionClient

from tests.e2e.harness import Server
from tests.e2e.motion.test_planner_process import INSTALLED
from tests.e2e.sdk.test_components import play, refused, until
from tests.unit.models.motion.support import DOCUMENT, START

DOWN = {"o_x": 0.0, "o_y": 0.0, "o_z": -1.0, "theta": 0.0}


@pytest.fixture(scope="module")
def planning_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Server(DOCUMENT, tmp_path_factory.mktemp("machine")) as server:
        yield server.wait_running().address


def to(x: float, y: float, z: float, frame: str = "world") -> PoseInFrame:
    return PoseInFrame(reference_frame=frame, pose=Pose(x=x, y=y, z=z, **DOWN))


async def begun(robot: RobotClient) -> tuple[MotionClient, Arm]:
    arm = Arm.from_robot(robot, "arm1")
    await arm.move_to_joint_positions(JointPositions(values=START))
    return MotionClient.from_robot(robot, "builtin"), arm


def test_move_and_get_pose(planning_machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        motion, _ = await begun(robot)
        assert await motion.move("grip", to(-400, -300, 300))
        pose = (await motion.get_pose("grip", "world")).pose
        assert (pose.x, pose.y, pose.z) == pytest.approx((-400, -300, 300), abs=0.1)
        assert pose.o_z == pytest.approx(-1)
        states = await motion.list_plan_statuses()
        assert states[-1].status.state == PlanState.PLAN_STATE_SUCCEEDED
        plan = await motion.get_plan("grip", execution_id=states[-1].execution_id)
        assert plan.current_plan_with_status.plan.steps[-1].step["grip"].pose.y == pytest.approx(-300, abs=0.1)

    play(planning_machine, script)


def test_a_wall_is_avoided_or_named(planning_machine: str) -> None:
    walls = WorldState(
        obstacles=[
            GeometriesInFrame(
                reference_frame="world",
                geometries=[
                    Geometry(
                        label="wall",
                        center=Pose(x=-560, y=-330, z=190, o_z=1),
                        box=RectangularPrism(dims_mm=Vector3(x=600, y=30, z=380)),
                    )
                ],
            )
        ]
    )

    async def script(robot: RobotClient) -> None:
        motion, arm = await begun(robot)
        failure = ""
        try:
            assert await motion.move("grip", to(-220, -560, 300), walls)
        except GRPCError as error:  # without a search, it depends on the postures whether one has a direct way
            failure = str(error.message)
        if failure:
            assert not INSTALLED, failure
            assert "wall" in failure
            assert list((await arm.get_joint_positions()).values) == pytest.approx(START)
            return
        assert (await motion.get_pose("grip", "world")).pose.y == pytest.approx(-560, abs=0.1)

    play(planning_machine, script)


def test_a_line_with_an_object_in_the_gripper(planning_machine: str) -> None:
    cup = Transform(
        reference_frame="cup",
        pose_in_observer_frame=PoseInFrame(reference_frame="grip", pose=Pose(z=120, o_z=1)),
        physical_object=Geometry(label="cup", center=Pose(o_z=1), sphere=Sphere(radius_mm=30)),
    )

    async def script(robot: RobotClient) -> None:
        motion, _ = await begun(robot)
        world = WorldState(transforms=[cup])
        before = (await motion.get_pose("cup", "world", [cup])).pose
        goal = PoseInFrame(reference_frame="world", pose=before)
        goal.pose.y += 200
        line = Constraints(linear_constraint=[LinearConstraint(line_tolerance_mm=1.0)])
        assert await motion.move("cup", goal, world, line)
        after = (await motion.get_pose("cup", "world", [cup])).pose
        assert after.y == pytest.approx(goal.pose.y, abs=0.1)
        steps = (await motion.get_plan("cup")).current_plan_with_status.plan.steps
        assert max(abs(step.step["cup"].pose.z - before.z) for step in steps) < 1.0

    play(planning_machine, script)


def test_a_motion_is_stopped(planning_machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        motion, arm = await begun(robot)
        moving = asyncio.create_task(motion.move("grip", to(400, 300, 400)))
        await until(arm.is_moving)
        await motion.stop_plan("grip")
        with pytest.raises(Exception, match="stopped"):
            await moving
        assert not await arm.is_moving()

    play(planning_machine, script)


def test_wrong_requests_are_refused(planning_machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        motion, _ = await begun(robot)
        await refused(Status.INVALID_ARGUMENT, motion.move("grip", to(9000, 0, 0)))
        await refused(Status.NOT_FOUND, motion.move("grip", to(0, 0, 0, "nowhere")))
        await refused(Status.UNIMPLEMENTED, motion.move("table", to(0, 0, 0)))
        await refused(Status.FAILED_PRECONDITION, motion.move_on_map("grip", Pose(), "slam"))
        await refused(Status.NOT_FOUND, motion.stop_plan("grip"))

        def shape(**size: Any) -> WorldState:
            return WorldState(obstacles=[GeometriesInFrame(geometries=[Geometry(center=Pose(o_z=1), **size)])])

        await refused(Status.INVALID_ARGUMENT, motion.move("grip", to(0, 0, 0), shape(sphere=Sphere(radius_mm=-1))))
        await refused(Status.INVALID_ARGUMENT, motion.move("grip", to(float("nan"), 0, 0)))

    play(planning_machine, script)


def test_a_million_obstacles_do_not_stop_the_machine(planning_machine: str) -> None:
    async def script(robot: RobotClient) -> None:
        motion, arm = await begun(robot)
        ball = Geometry(sphere=Sphere(radius_mm=1))
        world = WorldState(obstacles=[GeometriesInFrame(geometries=[ball] * 1_000_000)])
        with pytest.raises(Exception, match=r".") as caught:
            await motion.move("grip", to(-400, -300, 300), world)
        assert any(word in str(caught.value) for word in ("obstacles", "larger", "message", "size"))
        assert list((await arm.get_joint_positions()).values) == pytest.approx(START)

    play(planning_machine, script)
