"""The simulated services: what they answer does not depend on anything but the clock."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from engine.services.mlmodel import FlatTensor, FlatTensors
from engine.services.motion import PlanState
from engine.services.world_state_store import TransformChangeType
from schema.errors import ErrorKind, MachineError
from schema.space.geometry import GeoPoint, Pose, PoseInFrame
from tests.unit.models.builtin.support import Bench


async def test_an_ml_model_that_detects_the_same_object(bench: Bench, autojump_clock: MockClock) -> None:
    service = await bench.add("rdk:service:mlmodel")
    metadata = await service.metadata()
    assert [each.name for each in metadata.input_info] == ["image"]
    tensors = (await service.infer(FlatTensors({"image": FlatTensor((1, 1, 1, 3), uint8_tensor=b"abc")}))).tensors
    assert list(tensors) == [each.name for each in metadata.output_info]
    assert list(tensors["location"].float_tensor) == [0.25, 0.25, 0.75, 0.75]
    with pytest.raises(MachineError, match="no input 'sound'"):
        await service.infer(FlatTensors({"sound": FlatTensor()}))


async def test_a_motion_service_that_moves_nothing(bench: Bench, autojump_clock: MockClock) -> None:
    service = await bench.add("rdk:service:motion")
    assert (await service.get_pose(component_name="arm")).pose == Pose()
    assert await service.move(PoseInFrame("table", Pose(x=5.0)), component_name="arm")
    assert (await service.get_pose(component_name="arm")).pose == Pose(x=5.0)
    execution = await service.move_on_globe(GeoPoint(1.0, 2.0), component_name="rover")
    await service.move_on_map(Pose(), component_name="rover")
    await service.stop_plan(component_name="rover")
    statuses = await service.list_plan_statuses()
    assert [each.status.state for each in statuses] == [PlanState.SUCCEEDED] * 3
    assert (await service.get_plan(component_name="rover", execution_id=execution)).current_plan_with_status is not None
    with pytest.raises(MachineError, match="no component"):
        await service.move(PoseInFrame())


async def test_a_map_of_a_room(bench: Bench, autojump_clock: MockClock) -> None:
    service = await bench.add("rdk:service:slam")
    pieces = [piece async for piece in service.get_point_cloud_map()]
    header, _, body = b"".join(pieces).partition(b"DATA binary\n")
    assert len(body) == 16 * int(header.split(b"POINTS ")[1].split()[0])
    start = await service.get_position()
    await trio.sleep(30)
    assert (await service.get_position()).x == pytest.approx(-start.x)


async def test_objects_one_of_which_moves(bench: Bench, autojump_clock: MockClock) -> None:
    service = await bench.add("rdk:service:world_state_store")
    uuids = await service.list_uuids()
    assert [(await service.get_transform(each)).uuid for each in uuids] == uuids
    with pytest.raises(MachineError) as caught:
        await service.get_transform(b"\xff" * 10_000)
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert len(str(caught.value)) < 500
    stream = service.stream_transform_changes()
    changes = [await anext(stream) for _ in range(5)]
    await stream.aclose()
    kinds = [each.change_type for each in changes]
    assert kinds == [TransformChangeType.ADDED] * 3 + [TransformChangeType.UPDATED] * 2
    assert changes[3].transform.pose_in_observer_frame != changes[4].transform.pose_in_observer_frame


async def test_a_picture_of_a_camera_that_is_named(bench: Bench, autojump_clock: MockClock) -> None:
    await bench.add("camera", "cam")
    service = await bench.add("rdk:service:vision")
    answer = await service.capture_all_from_camera("cam", True, True, True)
    assert answer.image is not None
    assert answer.detections[0].class_name == answer.classifications[0].class_name == "object"
    assert (await service.capture_all_from_camera("none", True)).image is None
