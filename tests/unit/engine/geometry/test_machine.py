"""RPCs of the frame system on a whole machine in memory, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from engine.components.motion.arm import Arm
from engine.components.motion.gripper import Gripper
from engine.components.motion.kinematics import Kinematics
from engine.registry import Registry
from engine.resource import Extra, model
from hal.errors import Fault
from hal.sim.faults import FaultPlan
from models import BUILTIN
from runtime.server.memory import MemoryMachine, open_machine
from runtime.server.robot.joints import KINEMATICS_LIMIT
from schema.errors import ErrorKind, MachineError
from schema.space.geometry import Pose

ROBOT = "viam.robot.v1.RobotService"


def component(api: str, name: str, parent: str = "", created: str = "fake", **translation: float) -> dict[str, Any]:
    entry: dict[str, Any] = {"api": f"rdk:component:{api}", "name": name, "model": created}
    if parent:
        entry["frame"] = {"parent": parent, "translation": translation}
    return entry


CELL = {
    "components": [
        component("gantry", "gantry", "world", z=100.0),
        component("arm", "arm", "gantry"),
        component("camera", "camera", "arm", z=50.0),
        component("camera", "overview", "world", z=2000.0),
        component("sensor", "sensor"),
    ]
}


async def robot(memory: MemoryMachine, method: str, **arguments: Any) -> Any:
    return await memory.client().call(ROBOT, "", method, **arguments)


def place(answer: Any) -> list[float]:
    return [answer["pose"][axis] for axis in "xyz"]


async def test_a_pose_follows_gantry_and_arm(autojump_clock: MockClock) -> None:
    async with open_machine(CELL) as memory:
        await memory.machine.lifecycle.running.wait()
        client = memory.client()
        await client.call("rdk:component:gantry", "gantry", "move_to_position", positions_mm=[10, 20, 30])
        await client.call("rdk:component:arm", "arm", "move_to_joint_positions", positions=[90, 0, 90, 0, 0, 0])
        end = await client.call("rdk:component:arm", "arm", "get_end_position")
        assert [end[axis] for axis in "xyz"] == pytest.approx([0, 440, 550], abs=1e-6)
        assert place(await robot(memory, "get_pose", component_name="arm")) == pytest.approx([10, 460, 680])
        seen = await robot(memory, "get_pose", component_name="camera", destination_frame="gantry")
        assert (seen["reference_frame"], place(seen)) == ("gantry", pytest.approx([0, 490, 550]))
        below = {"reference_frame": "overview", "pose": {"x": 1, "y": 2, "z": -1000}}
        there = await robot(memory, "transform_pose", source=below, destination="arm_origin")
        assert place(there) == pytest.approx([-9, -18, 870])


async def test_a_supplemental_frame_on_the_arm(autojump_clock: MockClock) -> None:
    async with open_machine(CELL) as memory:
        await memory.machine.lifecycle.running.wait()
        cup = {"reference_frame": "cup", "pose_in_observer_frame": {"reference_frame": "camera", "pose": {"z": 25}}}
        seen = await robot(
            memory, "get_pose", component_name="cup", destination_frame="arm", supplemental_transforms=[cup]
        )
        assert place(seen) == pytest.approx([0, 0, 75], abs=1e-6)


async def test_a_component_is_found_by_its_own_name_too(autojump_clock: MockClock) -> None:
    lens = component("camera", "camera", "world", z=5.0)
    lens["frame"]["id"] = "lens"
    async with open_machine({"components": [lens]}) as memory:
        await memory.machine.lifecycle.running.wait()
        for name in ("camera", "lens"):
            assert place(await robot(memory, "get_pose", component_name=name)) == [0, 0, 5]


async def test_the_list_has_the_configured_links(autojump_clock: MockClock) -> None:
    async with open_machine(CELL) as memory:
        await memory.machine.lifecycle.running.wait()
        parts = {item["frame"]["reference_frame"]: item for item in await robot(memory, "frame_system_config")}
        assert list(parts) == ["gantry", "arm", "camera", "overview"]
        assert [joint["id"] for joint in parts["gantry"]["kinematics"]["joints"]] == ["x", "y", "z"]
        assert parts["arm"]["kinematics"]["kinematic_param_type"] == "SVA"
        assert parts["camera"]["kinematics"] == {}
        observed = parts["camera"]["frame"]["pose_in_observer_frame"]
        assert (observed["reference_frame"], place(observed)) == ("arm", [0, 0, 50])


async def test_a_point_cloud_is_seen_from_elsewhere(autojump_clock: MockClock) -> None:
    async with open_machine(CELL) as memory:
        await memory.machine.lifecycle.running.wait()
        cloud = (
            b"VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 1\nHEIGHT 1\nPOINTS 1\n"
            b"DATA ascii\n1 2 -1\n"
        )
        moved = await robot(memory, "transform_pcd", point_cloud_pcd=cloud, source="overview", destination="world")
        assert moved == cloud.replace(b"1 2 -1\n", b"1 2 1\n")


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("sensor", ErrorKind.NOT_FOUND, "configure a frame for sensor"),
        ("nobody", ErrorKind.NOT_FOUND, "known frames: world, arm"),
    ],
)
async def test_frames_that_are_not_there(autojump_clock: MockClock, name: str, kind: ErrorKind, words: str) -> None:
    async with open_machine(CELL) as memory:
        await memory.machine.lifecycle.running.wait()
        with pytest.raises(MachineError, match=words) as caught:
            await robot(memory, "get_pose", component_name=name)
        assert caught.value.kind is kind


async def test_a_joint_that_cannot_be_read_is_an_error_only_for_those_it_matters_to(autojump_clock: MockClock) -> None:
    async with open_machine(CELL) as memory:
        await memory.machine.lifecycle.running.wait()
        memory.machine.bench.world.faults.inject("arm", FaultPlan(Fault.GONE))
        with pytest.raises(MachineError, match="arm"):
            await robot(memory, "get_pose", component_name="camera")
        assert place(await robot(memory, "get_pose", component_name="arm_origin")) == pytest.approx([0, 0, 100])
        assert len(await robot(memory, "frame_system_config")) == 4


async def test_a_component_that_is_not_ready_is_named(autojump_clock: MockClock) -> None:
    document = {"components": [component("arm", "arm", "world", created="rdk:builtin:none")]}
    async with open_machine(document) as memory:
        await memory.machine.lifecycle.running.wait()
        with pytest.raises(MachineError, match="rdk:component:arm/arm is un") as caught:
            await robot(memory, "get_pose", component_name="arm")
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        (part,) = await robot(memory, "frame_system_config")
        assert part["kinematics"] == {}


async def test_a_gripper_with_unreadable_jaws_is_not_rigid(autojump_clock: MockClock) -> None:
    document = {"components": [component("gripper", "hand", "world", z=5.0)]}
    async with open_machine(document) as memory:
        await memory.machine.lifecycle.running.wait()
        client = memory.client()
        await client.call("rdk:component:gripper", "hand", "go_to_inputs", values=[20])
        assert place(await robot(memory, "get_pose", component_name="hand")) == pytest.approx([20, 0, 5])
        memory.machine.bench.world.faults.inject("hand", FaultPlan(Fault.GONE))
        with pytest.raises(MachineError, match="hand"):
            await robot(memory, "get_pose", component_name="hand")


@model("test:frames:slow")
class SlowArm(Arm):
    """Report the end position, but never answer with the kinematics."""

    async def get_end_position(self, *, extra: Extra = None) -> Pose:
        return Pose(1, 2, 3)

    async def get_kinematics(
        self, include_collision_meshes: bool = False, include_visual_meshes: bool = False, *, extra: Extra = None
    ) -> Kinematics:
        await trio.sleep_forever()
        raise AssertionError


@model("test:frames:rigid")
class RigidGripper(Gripper):
    """A gripper without joints."""

    async def get_current_inputs(self, *, extra: Extra = None) -> Sequence[float]:
        raise AssertionError("it was said that there are none")


def registry() -> Registry:
    result = Registry(BUILTIN, offers=lambda: ())
    for cls in (SlowArm, RigidGripper):
        assert cls.MODEL is not None
        result.add(cls.API, cls.MODEL, cls)
    return result


async def test_a_slow_component_delays_the_list_only_a_little(autojump_clock: MockClock) -> None:
    document = {
        "components": [
            component("arm", "slow", "world", created="test:frames:slow"),
            component("gantry", "gantry", "slow"),
            component("gripper", "hand", "slow", created="test:frames:rigid", z=7.0),
        ]
    }
    async with open_machine(document, registry=registry()) as memory:
        await memory.machine.lifecycle.running.wait()
        begin = trio.current_time()
        parts = await robot(memory, "frame_system_config")
        assert trio.current_time() - begin == pytest.approx(KINEMATICS_LIMIT)
        assert [bool(part["kinematics"]) for part in parts] == [False, True, False]
        assert place(await robot(memory, "get_pose", component_name="hand")) == [1, 2, 10]
