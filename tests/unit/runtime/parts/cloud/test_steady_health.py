"""The health of a machine does not change with each attempt to start a resource."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import trio
from trio.testing import MockClock

from engine.components.sensing.sensor import Sensor
from engine.registry import Registry
from engine.views.health import MachineHealth, health_of
from runtime.parts.cloud.link import _state
from runtime.parts.cloud.live import _Since, snapshot
from runtime.server.memory import MemoryMachine, open_machine
from schema.errors import ErrorKind, MachineError
from schema.names import Model


class Absent(Sensor):
    """A sensor whose device is absent until it is plugged in; each attempt to open it takes a second."""

    plugged_in: ClassVar[bool] = False
    attempts: ClassVar[int] = 0

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        type(self).attempts += 1
        await trio.sleep(1)
        if not self.plugged_in:
            raise MachineError("/dev/video0 does not exist", kind=ErrorKind.UNAVAILABLE, remedy="plug it in")
        task_status.started()
        await trio.sleep_forever()


class Dependent(Sensor):
    """A sensor that needs the other one."""


SENSOR = {"api": "rdk:component:sensor"}
DOCUMENT: dict[str, Any] = {
    "components": [
        {"name": "camera", "model": "absent", **SENSOR},
        {"name": "eye", "model": "dependent", "depends_on": ["camera"], **SENSOR},
        {"name": "other", "model": "dependent", **SENSOR},
        {"name": "wrong", "model": 5, **SENSOR},
    ]
}


@pytest.fixture
def registry() -> Registry:
    Absent.plugged_in, Absent.attempts = False, 0
    registry = Registry({})
    registry.add(Sensor.API, Model.parse("absent"), Absent)
    registry.add(Sensor.API, Model.parse("dependent"), Dependent)
    return registry


def facts(memory: MemoryMachine, since: _Since) -> tuple[Any, ...]:
    """Return what the cloud and its pages show of resources."""
    status = memory.machine.status()
    report = _state(memory.machine, memory.machine.configured.masker)
    resources = snapshot(since.settled(status), {})["resources"]
    return (
        health_of(status),
        tuple(report[key] for key in ("ready", "unhealthy", "waiting", "problems")),
        tuple((item["name"], item["state"], item["reason"], item["since"]) for item in resources),
    )


async def test_retries_of_a_resource_leave_it_unhealthy(autojump_clock: MockClock, registry: Registry) -> None:
    async with open_machine(DOCUMENT, registry=registry) as memory:
        await trio.sleep(2)
        since = _Since()
        first = facts(memory, since)
        assert first[0] == MachineHealth(ready=1, unhealthy=2, waiting=1, problems=1)  # unhealthy: camera and wrong
        assert first[1] == (1, 2, 1, 1)
        shown = await memory.client().call("viam.robot.v1.RobotService", "", "get_machine_status")
        reasons = {entry["name"].rpartition("/")[2]: entry["error"] for entry in shown["resources"]}
        assert "/dev/video0 does not exist" in reasons["camera"]
        assert "camera" in reasons["eye"], "why it waits"
        assert reasons["other"] == ""
        before = Absent.attempts
        for _ in range(750):
            await trio.sleep(0.1)
            assert facts(memory, since) == first
            assert [value for name, value in memory.machine.sample().items() if name.endswith("camera.State")] == [3]
        assert Absent.attempts > before + 2, "it was tried again"
        Absent.plugged_in = True
        await trio.sleep(60)
        assert health_of(memory.machine.status()).ready == 3
