"""The arms `simulated` and `wrapper_arm`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from engine.components.motion.arm import TrajectoryPoint
from engine.geometry.chain import forward_kinematics
from engine.geometry.sva import dump
from engine.kinematics import arms
from schema.errors import ConfigError, ErrorKind, MachineError
from schema.space.geometry import Pose
from tests.unit.models.builtin.support import Bench

SIMULATED = "rdk:builtin:simulated"
WRAPPER = "rdk:builtin:wrapper_arm"


async def test_a_simulated_arm_takes_its_time(bench: Bench, autojump_clock: MockClock) -> None:
    arm = await bench.add("arm", attributes={"arm-model": "ur5e", "speed": 0.5}, model=SIMULATED)
    assert list(await arm.get_joint_positions()) == [0.0] * 6
    begin = trio.current_time()
    await arm.move_to_joint_positions([57.29577951308232, 0, 0, 0, 0, 0])
    assert trio.current_time() - begin == pytest.approx(2.0)
    end = await arm.get_end_position()
    expected = forward_kinematics(arms.named("ur5e"), await arm.get_joint_positions())
    assert (end.x, end.y, end.z) == pytest.approx(expected.translation)


async def test_a_simulated_arm_begins_at_zero(bench: Bench, autojump_clock: MockClock) -> None:
    arm = await bench.add("arm", model=SIMULATED)
    assert list(await arm.get_joint_positions()) == [0.0] * 6


@pytest.mark.parametrize(
    "attributes", [{"speed": 0}, {"speed": -1}, {"speed": 1000}, {"arm-model": "ur5e", "model-path": "/x"}]
)
async def test_wrong_attributes_are_refused(bench: Bench, attributes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        await bench.add("arm", attributes=attributes, model=SIMULATED)


@pytest.fixture
def kinematics_file(tmp_path: Path) -> Path:
    path = tmp_path / "arm.json"
    path.write_bytes(dump(arms.named("xarm6")))
    return path


async def wrapped(bench: Bench, path: Path, **actual: Any) -> tuple[Any, Any]:
    arm = await bench.add("arm", "actual", actual)
    attributes = {"arm-name": "actual", "model-path": str(path)}
    return arm, await bench.add("arm", "wrapper", attributes, model=WRAPPER)


async def test_a_wrapper_has_the_kinematics_of_its_file(
    bench: Bench, autojump_clock: MockClock, kinematics_file: Path
) -> None:
    actual, wrapper = await wrapped(bench, kinematics_file)
    await actual.move_to_joint_positions([0.0] * 6)
    end = await wrapper.get_end_position()
    assert (end.x, end.y, end.z) == pytest.approx((207.0, 0.0, 112.0))
    model = (await wrapper.get_kinematics()).model
    assert model is not None
    assert [joint.id for joint in model.joints] == [f"joint{number}" for number in range(1, 7)]
    assert (await wrapper.get_geometries())[0].label == "wrapper:base"
    await wrapper.move_to_position(Pose(300, 100, 200, 0, 0, -1, 0))
    end = await wrapper.get_end_position()
    assert (end.x, end.y, end.z) == pytest.approx((300, 100, 200), abs=0.01)
    assert list(await actual.get_joint_positions()) == list(await wrapper.get_joint_positions())


async def test_a_wrapper_keeps_the_limits_of_its_file(
    bench: Bench, autojump_clock: MockClock, kinematics_file: Path
) -> None:
    actual, wrapper = await wrapped(bench, kinematics_file)
    before = await actual.get_joint_positions()
    for call in (
        lambda: wrapper.move_to_joint_positions([0, 130, 0, 0, 0, 0]),
        lambda: wrapper.move_through_joint_positions([[0] * 6, [0, 130, 0, 0, 0, 0]]),
        lambda: wrapper.move_to_joint_positions([0, 0]),
        lambda: wrapper.move_to_position(Pose(5000, 0, 0)),
    ):
        with pytest.raises(MachineError) as caught:
            await call()
        assert caught.value.kind is ErrorKind.INVALID
    assert await actual.get_joint_positions() == before


async def test_a_wrapper_passes_other_calls_on(bench: Bench, autojump_clock: MockClock, kinematics_file: Path) -> None:
    actual, wrapper = await wrapped(bench, kinematics_file)
    await wrapper.move_through_joint_positions([[0.0] * 6, [10.0, 0, 0, 0, 0, 0]])
    assert (await actual.get_joint_positions())[0] == pytest.approx(10)
    assert await wrapper.do_command({"a": 1}) == {"a": 1}
    assert await wrapper.get_3d_models() == {}
    assert (await wrapper.get_properties()).support_cartesian_commands
    assert await wrapper.get_manual_mode() is False
    async with trio.open_nursery() as nursery:

        async def move() -> None:
            with pytest.raises(MachineError):
                await wrapper.move_to_joint_positions([90.0, 0, 0, 0, 0, 0])

        nursery.start_soon(move)
        await trio.sleep(0.2)
        assert await wrapper.is_moving()
        await wrapper.stop()
    assert not await actual.is_moving()
    send, receive = trio.open_memory_channel[list[TrajectoryPoint]](0)
    send.close()
    assert [ack async for ack in wrapper.move_through_joint_positions_streamed(receive)] == []
    with pytest.raises(MachineError):
        await wrapper.set_manual_mode(True)


async def test_a_wrapper_of_an_arm_with_other_joints_says_so(
    bench: Bench, autojump_clock: MockClock, kinematics_file: Path
) -> None:
    _, wrapper = await wrapped(bench, kinematics_file, **{"arm-model": "xarm7"})
    with pytest.raises(MachineError, match=r"has 7 joints, but the kinematics of .*wrapper have 6"):
        await wrapper.get_end_position()


async def test_a_file_that_cannot_be_read_is_an_error_with_its_path(bench: Bench, tmp_path: Path) -> None:
    await bench.add("arm", "actual")
    for path in (tmp_path / "missing.json", tmp_path):
        with pytest.raises(ConfigError, match=str(path)):
            await bench.add("arm", "wrapper", {"arm-name": "actual", "model-path": str(path)}, model=WRAPPER)
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(5 * 1024 * 1024)
    with pytest.raises(ConfigError, match="more than 1048576"):
        await bench.add("arm", "wrapper", {"arm-name": "actual", "model-path": str(large)}, model=WRAPPER)
