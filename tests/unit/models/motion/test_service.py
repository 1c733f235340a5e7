"""The motion service on a machine in memory: it moves what it should, and says why it does not."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from engine.geometry.sva import dump
from engine.kinematics.arms import named
from runtime.server.memory import open_machine
from schema.errors import ErrorKind, MachineError
from tests.unit.models.motion.support import (
    ARM,
    DOCUMENT,
    GRIPPER,
    MOTION,
    TABLE,
    Rig,
    at,
    opened,
)


async def refused(rig: Rig, **arguments: Any) -> MachineError:
    with pytest.raises(MachineError) as caught:
        await rig.call("move", component_name="grip", **arguments)
    return caught.value


async def test_a_gripper_is_moved_to_a_pose(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        assert await rig.call("move", component_name="grip", destination=at(-400, -300, 300)) is True
        pose = await rig.pose()
        assert [pose["x"], pose["y"], pose["z"]] == pytest.approx([-400, -300, 300], abs=0.1)
        assert [pose["o_z"], pose["theta"]] == pytest.approx([-1, 0], abs=0.01)
        flange = await rig.pose("arm1")
        assert flange["z"] == pytest.approx(300 + 10, abs=0.1)


async def test_motion_takes_the_time_of_the_arm(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        begin = trio.current_time()
        await rig.call("move", component_name="arm1", destination=at(-400, -300, 400))
        assert 0.1 < trio.current_time() - begin < 10


async def test_a_destination_may_be_in_any_frame(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        before = await rig.pose()
        up = {"reference_frame": "grip", "pose": {"z": -50}}
        await rig.call("move", component_name="grip", destination=up)
        after = await rig.pose()
        tool = [before[key] for key in ("o_x", "o_y", "o_z")]
        expected = [before[key] - 50 * part for key, part in zip("xyz", tool, strict=True)]
        assert [after[key] for key in "xyz"] == pytest.approx(expected, abs=0.1)
        await rig.call("move", component_name="grip", destination=at(-400, -300, 340, "table"))
        assert (await rig.pose())["z"] == pytest.approx(300, abs=0.1)


async def test_frames_of_the_request_may_be_moved_and_named(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        world = {
            "transforms": [
                {
                    "reference_frame": "pencil",
                    "pose_in_observer_frame": {"reference_frame": "grip", "pose": {"z": 80, "o_z": 1}},
                    "physical_object": {
                        "label": "pencil",
                        "center": {"z": -40},
                        "capsule": {"radius_mm": 5, "length_mm": 80},
                    },
                },
                {
                    "reference_frame": "paper",
                    "pose_in_observer_frame": {"pose": {"x": -450, "y": -200, "z": 100, "o_z": 1}},
                },
            ]
        }
        destination = at(0, 0, 20, "paper")
        await rig.call("move", component_name="pencil", destination=destination, world_state=world)
        tip = await rig.call(
            "get_pose", component_name="pencil", destination_frame="paper", supplemental_transforms=world["transforms"]
        )
        assert [tip["pose"][key] for key in "xyz"] == pytest.approx([0, 0, 20], abs=0.1)
        labels = {solid.label: solid.body for solid in rig.planner.problems[-1].solids}
        assert labels["pencil"] == 6
        assert labels["table"] == 0
        assert labels["grip"] == 6
        assert labels["arm1:elbow_link"] == 3


async def test_an_obstacle_blocks_and_is_named(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        start = await rig.pose()
        destination = {"reference_frame": "world", "pose": {**start, "y": start["y"] + 400}}
        ball = {
            "label": "ball",
            "center": {"x": start["x"], "y": start["y"] + 220, "z": start["z"]},
            "sphere": {"radius_mm": 30},
        }
        world = {"obstacles": [{"reference_frame": "world", "geometries": [ball]}]}
        line = {"linear_constraint": [{}]}
        before = await rig.arm("get_joint_positions")
        problem = await refused(rig, destination=destination, world_state=world, constraints=line)
        assert "ball" in problem.message
        assert "pip install" in problem.message
        assert await rig.arm("get_joint_positions") == before
        pairs = [{"frame1": "ball", "frame2": name} for name in ("arm1", "grip")]
        line["collision_specification"] = [{"allows": pairs}]
        await rig.call("move", component_name="grip", destination=destination, constraints=line, world_state=world)


async def test_the_table_of_the_configuration_is_an_obstacle(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        problem = await refused(rig, destination=at(-400, -300, -100))
        assert "table" in problem.message


async def test_a_line_is_followed(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        linear = {"linear_constraint": [{"line_tolerance_mm": 2.0, "orientation_tolerance_degs": 3.0}]}
        start = await rig.pose()
        destination = {"reference_frame": "world", "pose": {**start, "y": start["y"] + 200}}
        await rig.call("move", component_name="grip", destination=destination, constraints=linear)
        plan = await rig.call("get_plan", component_name="grip")
        steps = plan["current_plan_with_status"]["plan"]["steps"]
        assert len(steps) > 20
        for step in steps:
            pose = step["step"]["grip"]["pose"]
            assert pose["x"] == pytest.approx(start["x"], abs=2.0)
            assert pose["z"] == pytest.approx(start["z"], abs=2.0)


async def test_a_motion_can_be_stopped(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        results: list[MachineError] = []

        async def move() -> None:
            with pytest.raises(MachineError) as caught:
                await rig.call("move", component_name="grip", destination=at(400, 300, 400))
            results.append(caught.value)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(move)
            await trio.sleep(0.5)
            assert await rig.arm("is_moving")
            active = await rig.call("list_plan_statuses", only_active_plans=True)
            assert [each["status"]["state"] for each in active] == ["IN_PROGRESS"]
            await rig.call("stop_plan", component_name="grip")
            assert not await rig.arm("is_moving")
        assert results[0].kind is ErrorKind.CANCELLED
        (status,) = await rig.call("list_plan_statuses")
        assert (status["status"]["state"], status["component_name"]) == ("STOPPED", "grip")
        with pytest.raises(MachineError, match="no motion of 'grip'"):
            await rig.call("stop_plan", component_name="grip")


async def test_a_caller_that_leaves_stops_the_arm(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        with trio.move_on_after(0.5):
            await rig.call("move", component_name="grip", destination=at(400, 300, 400))
        await trio.sleep(0.1)
        assert not await rig.arm("is_moving")
        (status,) = await rig.call("list_plan_statuses")
        assert status["status"]["state"] == "STOPPED"


async def test_stop_all_stops_a_motion_that_is_being_planned(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        rig.planner.gate = trio.Event()
        async with trio.open_nursery() as nursery:

            async def move() -> None:
                with pytest.raises(MachineError):
                    await rig.call("move", component_name="grip", destination=at(-400, -300, 400))

            nursery.start_soon(move)
            await rig.planner.asked.wait()
            assert await rig.service.is_moving()
            await rig.client.call("viam.robot.v1.RobotService", "", "stop_all")
        assert not await rig.service.is_moving()


async def test_a_newer_motion_replaces_an_older_one(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        errors: list[MachineError] = []

        async def move() -> None:
            with pytest.raises(MachineError) as caught:
                await rig.call("move", component_name="arm1", destination=at(400, 300, 500))
            errors.append(caught.value)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(move)
            await trio.sleep(0.3)
            await rig.call("move", component_name="grip", destination=at(-400, -300, 300))
        assert "newer" in errors[0].message
        assert (await rig.pose())["x"] == pytest.approx(-400, abs=0.1)


async def test_an_arm_that_moves_during_planning_is_not_moved(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        rig.planner.gate = trio.Event()
        async with trio.open_nursery() as nursery:

            async def move() -> None:
                with pytest.raises(MachineError, match="has moved while"):
                    await rig.call("move", component_name="grip", destination=at(-400, -300, 400))

            nursery.start_soon(move)
            await rig.planner.asked.wait()
            await rig.arm("move_to_joint_positions", positions=[20.0, -70.0, 85.0, -100.0, -90.0, 0.0])
            rig.planner.gate.set()


async def test_plans_are_kept_with_their_states(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        await rig.call("move", component_name="grip", destination=at(-400, -300, 300))
        await refused(rig, destination=at(-5000, 0, 0))
        states = await rig.call("list_plan_statuses")
        assert [each["status"]["state"] for each in states] == ["SUCCEEDED", "FAILED"]
        assert "out of reach" in states[1]["status"]["reason"]
        first = await rig.call("get_plan", component_name="grip", execution_id=states[0]["execution_id"])
        plan = first["current_plan_with_status"]
        assert plan["plan"]["execution_id"] == states[0]["execution_id"]
        assert [each["state"] for each in plan["status_history"]] == ["IN_PROGRESS"]
        last = plan["plan"]["steps"][-1]["step"]["grip"]["pose"]
        assert last["x"] == pytest.approx(-400, abs=0.1)
        with pytest.raises(MachineError, match="no execution"):
            await rig.call("get_plan", component_name="other")


async def test_a_plan_without_a_motion(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        before = await rig.arm("get_joint_positions")
        command = {"plan": {"component_name": "grip", "destination": at(-400, -300, 300)}}
        plan = await rig.call("do_command", command=command)
        assert plan["method"] == "straight"
        assert plan["joint_positions"][0] == pytest.approx(before["values"])
        assert plan["times"][-1] > 0
        assert plan["poses"][-1]["y"] == pytest.approx(-300, abs=0.1)
        assert plan["clearance_mm"] > 0
        assert await rig.arm("get_joint_positions") == before
        for wrong in ({"plan": 1}, {"plan": {"component": "grip"}}, {"other": {}}, {}):
            with pytest.raises(MachineError):
                await rig.call("do_command", command=wrong)


async def test_options_are_passed_to_the_planner(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        extra = {"collision_buffer_mm": 2.5, "timeout": 3, "rseed": 7, "max_vel_degs_per_sec": 20}
        await rig.call("move", component_name="grip", destination=at(-400, -300, 300), extra=extra)
        (problem,) = rig.planner.problems
        assert (problem.margin, problem.seconds, problem.seed) == (2.5, 3.0, 7)
        assert problem.speeds == pytest.approx([math.radians(20)] * 6)
        for key, value in (("timeout", 1e9), ("rseed", "x"), ("collision_buffer_mm", -1)):
            wrong = await refused(rig, destination=at(-400, -300, 300), extra={key: value})
            assert key in wrong.message


async def test_other_arms_are_obstacles_where_they_are(autojump_clock: MockClock) -> None:
    other = {**ARM, "name": "arm2", "frame": {"parent": "world", "translation": {"x": -1400}}}
    async with opened({"components": [ARM, GRIPPER, TABLE, other]}) as rig:
        await rig.arm("move_to_joint_positions", "arm2", positions=[180, -90, 90, 0, 0, 0])
        await rig.call("move", component_name="grip", destination=at(-400, -300, 300))
        solids = {solid.label: solid for solid in rig.planner.problems[-1].solids}
        forearm = solids["arm2:elbow_link"]
        assert forearm.body == 0
        assert forearm.at[3] == pytest.approx(-1400 + 392.2 / 2, abs=60)


async def test_an_arm_on_a_gantry_is_moved_alone(autojump_clock: MockClock) -> None:
    gantry = {
        "name": "rail",
        "api": "rdk:component:gantry",
        "model": "fake",
        "attributes": {"length_mm": 500},
        "frame": {"parent": "world"},
    }
    arm = {**ARM, "frame": {"parent": "rail"}}
    async with opened({"components": [gantry, arm, GRIPPER]}) as rig:
        await rig.client.call("rdk:component:gantry", "rail", "move_to_position", positions_mm=[200.0])
        await rig.call("move", component_name="grip", destination=at(-200, -300, 300))
        assert (await rig.pose())["x"] == pytest.approx(-200, abs=0.1)
        assert await rig.client.call("rdk:component:gantry", "rail", "get_position") == [200.0]


async def test_a_gantry_is_moved(autojump_clock: MockClock) -> None:
    gantry = {
        "name": "rail",
        "api": "rdk:component:gantry",
        "model": "fake",
        "attributes": {"length_mm": 500},
        "frame": {"parent": "world"},
    }
    async with opened({"components": [gantry]}, start=None) as rig:
        before = await rig.pose("rail")
        destination = {"reference_frame": "world", "pose": {**before, "x": before["x"] + 120}}
        await rig.call("move", component_name="rail", destination=destination)
        position = await rig.client.call("rdk:component:gantry", "rail", "get_position")
        assert position == pytest.approx([120], abs=0.1)


async def test_older_clients_name_the_component_in_another_field(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        name = "rdk:component:gripper/grip"
        await rig.call("move", component_name_deprecated=name, destination=at(-400, -300, 300))
        pose = await rig.call("get_pose", component_name_deprecated=name, destination_frame="world")
        assert pose["pose"]["x"] == pytest.approx(-400, abs=0.1)


async def test_frames_that_nothing_moves_and_that_do_not_exist(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        with pytest.raises(MachineError, match="not attached to an arm"):
            await rig.call("move", component_name="table", destination=at(0, 0, 0))
        with pytest.raises(MachineError, match="there is no frame 'nothing'"):
            await rig.call("move", component_name="nothing", destination=at(0, 0, 0))
        with pytest.raises(MachineError, match="there is no frame 'nothing'"):
            await rig.call("move", component_name="grip", destination=at(0, 0, 0, "nothing"))
        with pytest.raises(MachineError, match="no component"):
            await rig.call("move", destination=at(0, 0, 0))
        with pytest.raises(MachineError, match="no destination"):
            await rig.call("move", component_name="grip")


async def test_driving_bases_is_refused_with_a_reason(autojump_clock: MockClock) -> None:
    async with opened() as rig:
        for method, match in (("move_on_map", "SLAM"), ("move_on_globe", "movement_sensor_name")):
            with pytest.raises(MachineError, match=match):
                await rig.call(method, component_name="base")


async def test_the_service_exists_where_something_can_be_moved(autojump_clock: MockClock) -> None:
    sensor = {"name": "s", "api": "rdk:component:sensor", "model": "fake"}
    for components, expected in (([sensor], False), ([ARM], True), ([TABLE], False), ([{**ARM, "frame": None}], True)):
        entries = [{key: value for key, value in each.items() if value is not None} for each in components]
        async with open_machine({"components": entries}) as memory:
            await memory.machine.lifecycle.running.wait()
            assert (f"{MOTION}/builtin" in memory.machine.roster.hosts) is expected


async def test_a_configured_service_replaces_the_default(autojump_clock: MockClock) -> None:
    service = {"name": "builtin", "api": MOTION, "model": "builtin", "attributes": {"margin_mm": 12.0}}
    async with opened({**DOCUMENT, "services": [service]}) as rig:
        await rig.call("move", component_name="grip", destination=at(-400, -300, 300))
        assert rig.planner.problems[0].margin == 12.0


async def test_an_arm_without_shapes_is_moved_with_a_warning(autojump_clock: MockClock, tmp_path: Path) -> None:
    thin = json.loads(dump(named("ur5e")))
    for link in thin["links"]:
        link.pop("geometry", None)
    path = tmp_path / "thin.json"
    path.write_text(json.dumps(thin))
    arm = {**ARM, "attributes": {"model-path": str(path)}}
    with capture_logs() as entries:
        async with opened({"components": [arm, GRIPPER]}) as rig:
            await rig.call("move", component_name="grip", destination=at(-400, -300, 300))
    assert "no shapes" in str(entries)


async def test_the_frame_of_a_gripper_may_have_its_shape(autojump_clock: MockClock) -> None:
    shaped = {**GRIPPER, "frame": {**GRIPPER["frame"], "geometry": {"type": "sphere", "r": 33, "label": "fist"}}}
    async with opened({"components": [ARM, shaped]}) as rig:
        await rig.call("move", component_name="grip", destination=at(-400, -300, 300))
        (fist,) = [solid for solid in rig.planner.problems[-1].solids if solid.owner == "grip"]
        assert (fist.label, fist.body, fist.radius) == ("fist", 6, 33.0)


async def test_a_component_that_is_not_ready_is_named(autojump_clock: MockClock) -> None:
    broken = {**ARM, "name": "arm2", "attributes": {"model-path": "/nowhere.json"}}
    async with opened({"components": [ARM, GRIPPER, broken]}) as rig:
        problem = await refused(rig, destination=at(-400, -300, 300))
        assert problem.kind is ErrorKind.UNAVAILABLE
        assert "arm2 is not ready" in problem.message
