"""MoveOnGlobe through the MotionClient of the unmodified official Python SDK."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from grpclib import Status
from viam.components.base import Base
from viam.components.movement_sensor import MovementSensor
from viam.proto.common import GeoGeometry, Geometry, GeoPoint, Pose, Sphere
from viam.proto.service.motion import MotionConfiguration, PlanState
from viam.robot.client import RobotClient
from viam.services.motion import MotionClient

from tests.e2e.harness import Server
from tests.e2e.sdk.test_components import play, refused, until
from tests.unit.models.motion.test_globe import DOCUMENT, north

FAST = MotionConfiguration(linear_m_per_sec=0.8, angular_degs_per_sec=90.0, position_polling_frequency_hz=5.0)


@pytest.fixture(scope="module")
def rover(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Server(DOCUMENT, tmp_path_factory.mktemp("machine")) as server:
        yield server.wait_running().address


def point(metres: float) -> GeoPoint:
    return GeoPoint(**north(metres))


def test_a_drive_and_its_plans(rover: str) -> None:
    async def script(robot: RobotClient) -> None:
        motion, gps = MotionClient.from_robot(robot, "builtin"), MovementSensor.from_robot(robot, "gps")
        execution = await motion.move_on_globe("rover", point(2.0), "gps", configuration=FAST)

        async def arrived() -> bool:
            (status,) = await motion.list_plan_statuses()
            assert status.execution_id == execution
            assert status.status.state in (PlanState.PLAN_STATE_IN_PROGRESS, PlanState.PLAN_STATE_SUCCEEDED)
            return status.status.state == PlanState.PLAN_STATE_SUCCEEDED

        await until(arrived)
        where = (await gps.get_position())[0]
        assert where.latitude == pytest.approx(point(2.0).latitude, abs=5e-6)
        plan = await motion.get_plan("rover", execution_id=execution)
        assert len(plan.current_plan_with_status.plan.steps) == 2

    play(rover, script)


def test_a_drive_is_stopped_or_refused(rover: str) -> None:
    async def script(robot: RobotClient) -> None:
        motion, base = MotionClient.from_robot(robot, "builtin"), Base.from_robot(robot, "rover")
        await motion.move_on_globe("rover", point(500.0), "gps", configuration=FAST)
        await until(base.is_moving)
        await motion.stop_plan("rover")
        assert not await base.is_moving()
        pond = Geometry(center=Pose(), sphere=Sphere(radius_mm=3000.0), label="pond")
        around = GeoGeometry(location=point(500.0), geometries=[pond])
        error = await refused(
            Status.FAILED_PRECONDITION,
            motion.move_on_globe("rover", point(500.0), "gps", obstacles=[around], configuration=FAST),
        )
        assert "pond" in str(error.message)

    play(rover, script)
