"""The simulated services through the clients of the unmodified official Python SDK."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from grpclib import Status
from viam.proto.common import Pose, PoseInFrame
from viam.robot.client import RobotClient
from viam.services.mlmodel import MLModelClient
from viam.services.motion import MotionClient
from viam.services.slam import SLAMClient
from viam.services.vision import VisionClient
from viam.services.worldstatestore import WorldStateStoreClient

from tests.e2e.harness import Server
from tests.e2e.sdk.test_components import play, refused

APIS = ("mlmodel", "motion", "slam", "vision", "world_state_store")


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    entries = [{"name": api, "api": f"rdk:service:{api}", "model": "fake"} for api in APIS]
    with Server({"services": entries}, tmp_path_factory.mktemp("machine")) as server:
        yield server.wait_running().address


def test_every_service_answers(services: str) -> None:
    async def script(robot: RobotClient) -> None:
        model = MLModelClient.from_robot(robot, "mlmodel")
        assert (await model.metadata()).name == "fake"
        outputs = await model.infer({"image": np.zeros((1, 2, 2, 3), np.uint8)})
        assert outputs["location"].shape == (1, 1, 4)
        motion = MotionClient.from_robot(robot, "motion")
        assert await motion.move("arm", PoseInFrame(reference_frame="world", pose=Pose(x=5)))
        assert (await motion.get_pose("arm", "world")).pose.x == 5
        slam = SLAMClient.from_robot(robot, "slam")
        assert b"".join(await slam.get_point_cloud_map()).startswith(b"VERSION .7\n")
        assert (await slam.get_position()).x
        assert not (await slam.get_properties()).cloud_slam
        vision = VisionClient.from_robot(robot, "vision")
        assert [each.class_name for each in await vision.get_detections_from_camera("any")] == ["object"]
        assert (await vision.get_properties()).detections_supported

    play(services, script)


def test_a_world_state_store(services: str) -> None:
    async def script(robot: RobotClient) -> None:
        store = WorldStateStoreClient.from_robot(robot, "world_state_store")
        uuids = await store.list_uuids()
        assert [(await store.get_transform(each)).uuid for each in uuids] == uuids
        await refused(Status.NOT_FOUND, store.get_transform(b"nothing"))
        changes = store.stream_transform_changes()
        received = [await anext(changes) for _ in range(4)]
        assert [list(each.updated_fields.paths) for each in received][-1]

    play(services, script)
