"""A whole machine in memory: configuration, calls, operations, sessions, stopping, maintenance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
import structlog
import trio
from structlog.testing import LogCapture
from trio.testing import MockClock, wait_all_tasks_blocked

from engine.components.motion.motor import Motor
from engine.components.sensing.sensor import Sensor
from engine.planning.maintenance import RETRY_INTERVAL
from engine.registry import Registry
from engine.resource import Attributes, Extra
from engine.views.status import MachineState
from models.check import check_document
from runtime.server.configuration import with_revision
from runtime.server.memory import MemoryMachine, open_machine
from runtime.server.port.serving import REQUESTS_LIMIT_VARIABLE
from schema.document.machine import decode_document as decode_document
from schema.errors import ErrorKind, MachineError
from schema.names import Model

ROBOT = "viam.robot.v1.RobotService"
STOPPED: list[tuple[float, str, Any]] = []


class Speed(Attributes):
    speed: float = 0.0


class SlowMotor(Motor):
    """Turn until stopped."""

    Config = Speed

    async def set_power(self, power_pct: float, *, extra: Extra = None) -> None:
        pass

    async def go_for(self, rpm: float, revolutions: float, *, extra: Extra = None) -> None:
        await trio.sleep_forever()

    async def stop(self, *, extra: Extra = None) -> None:
        STOPPED.append((trio.current_time(), self.name.name, extra))
        if self.name.name == "jammed":
            raise MachineError("it does not stop")

    async def is_moving(self) -> bool:
        return False


class Permission(Sensor):
    """Report whether maintenance is allowed."""

    readings: ClassVar[dict[str, Any]] = {}

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        return self.readings


def registry() -> Registry:
    result = Registry({})
    for cls in (SlowMotor, Permission):
        result.add(cls.API, Model.parse("test"), cls)
    return result


def motor(name: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": "rdk:component:motor", "model": "test", "attributes": attributes}


SENSOR = {"name": "permission", "api": "rdk:component:sensor", "model": "test"}
WINDOW = {"sensor_name": "rdk:component:sensor/permission", "maintenance_allowed_key": "allowed"}


@pytest.fixture(autouse=True)
def fresh() -> None:
    STOPPED.clear()
    Permission.readings = {"allowed": True}


async def settle(memory: MemoryMachine) -> None:
    await wait_all_tasks_blocked()
    await memory.graph.settled()
    await wait_all_tasks_blocked()


async def go_for(memory: MemoryMachine, name: str, outcomes: list[Any], **metadata: str) -> None:
    try:
        await memory.client(metadata).call("rdk:component:motor", name, "go_for", rpm=1.0, revolutions=1.0)
    except MachineError as error:
        outcomes.append(error)


async def test_one_bad_entry_does_not_affect_the_others(autojump_clock: MockClock) -> None:
    bad = {**motor("wrong"), "attributes": {"speed": "fast"}}
    unknown = {**motor("unknown"), "model": "tset"}
    async with open_machine({"components": [motor("good"), bad, unknown]}, registry=registry()) as memory:
        await settle(memory)
        assert memory.machine.lifecycle.state is MachineState.RUNNING
        states = {resource.name.partition("/")[2]: resource for resource in memory.machine.status().resources}
        assert states["good"].state == "ready"
        assert states["wrong"].state == states["unknown"].state == "unhealthy"
        assert "components.1.attributes.speed" in states["wrong"].reason
        assert "did you mean 'test'?" in states["unknown"].reason
        with pytest.raises(MachineError, match=r"attributes\.speed") as caught:
            await memory.client().call("rdk:component:motor", "wrong", "is_moving")
        assert caught.value.kind is ErrorKind.UNAVAILABLE


async def test_bad_json_keeps_the_configuration_and_says_so(autojump_clock: MockClock) -> None:
    async with open_machine({"components": [motor("m")], "revision": "1"}, registry=registry()) as memory:
        await settle(memory)
        driver = memory.machine.roster.find("m").resource
        memory.write(b'{"components": [')
        await settle(memory)
        status = memory.machine.status()
        assert status.config.rejected
        assert status.config.revision == "1"
        assert memory.machine.roster.find("m").resource is driver
        memory.write({"components": [motor("m")], "revision": "2"})
        await settle(memory)
        status = memory.machine.status()
        assert (status.config.rejected, status.config.revision) == ("", "2")
        assert memory.machine.roster.find("m").resource is driver  # only the revision has changed


async def test_keys_and_session_window_change_without_touching_resources(autojump_clock: MockClock) -> None:
    document = {"components": [motor("m")]}
    async with open_machine(document, registry=registry()) as memory:
        await settle(memory)
        driver = memory.machine.roster.find("m").resource
        port = memory.graph.snapshot()["internal/rpc"].runs
        auth = {"handlers": [{"type": "api-key", "config": {"id": "secret"}}]}
        memory.write({**document, "auth": auth, "network": {"sessions": {"heartbeat_window": "5s"}}})
        await settle(memory)
        assert memory.serving.gate.enabled
        assert memory.machine.traffic.sessions.window == 5.0
        assert memory.machine.roster.find("m").resource is driver
        assert memory.graph.snapshot()["internal/rpc"].runs == port
        memory.write({**document, "network": {"bind_address": "localhost:9"}})
        await settle(memory)
        assert not memory.serving.gate.enabled
        assert memory.graph.snapshot()["internal/rpc"].runs == port + 1
        assert memory.machine.roster.find("m").resource is driver


async def test_stop_all_cancels_others_stops_everything_and_lists_failures(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    outcomes: list[Any] = []
    async with open_machine({"components": [motor("a"), motor("jammed"), motor("z")]}, registry=registry()) as memory:
        await settle(memory)
        nursery.start_soon(go_for, memory, "a", outcomes)
        await wait_all_tasks_blocked()
        name = {"namespace": "rdk", "type": "component", "subtype": "motor", "name": "z"}
        with pytest.raises(MachineError, match="jammed: it does not stop"):
            await memory.client().call(ROBOT, "", "stop_all", extra=[{"name": name, "params": {"soft": True}}])
        assert [error.kind for error in outcomes] == [ErrorKind.CANCELLED]
        assert {(first, str(extra)) for _, first, extra in STOPPED} == {
            ("a", "None"),
            ("jammed", "None"),
            ("z", "{'soft': True}"),
        }
        STOPPED.clear()
    assert {left for _, left, _ in STOPPED} == {"a", "jammed", "z"}  # shutting down stops them, too


async def test_operations_can_be_listed_cancelled_and_waited_for(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    outcomes: list[Any] = []
    opid = "12345678-1234-4234-8234-123456789abc"
    async with open_machine({"components": [motor("a")]}, registry=registry()) as memory:
        await settle(memory)
        client = memory.client()
        nursery.start_soon(lambda: go_for(memory, "a", outcomes, opid=opid))
        await wait_all_tasks_blocked()
        (operation,) = await client.call(ROBOT, "", "get_operations")
        assert (operation["id"], operation["method"].rpartition("/")[2]) == (opid, "GoFor")
        ended = trio.Event()

        async def block() -> None:
            await memory.client().call(ROBOT, "", "block_for_operation", id=opid)
            ended.set()

        nursery.start_soon(block)
        await wait_all_tasks_blocked()
        assert not ended.is_set()
        await client.call(ROBOT, "", "cancel_operation", id=opid)
        await ended.wait()
        assert [error.kind for error in outcomes] == [ErrorKind.CANCELLED]


async def test_a_vanished_client_stops_what_it_commanded_and_only_that(autojump_clock: MockClock) -> None:
    async with open_machine({"components": [motor("mine"), motor("other")]}, registry=registry()) as memory:
        await settle(memory)
        session = await memory.client().call(ROBOT, "", "start_session")
        client = memory.client({"viam-sid": session["id"]})
        begun = trio.current_time()
        await client.call("rdk:component:motor", "mine", "set_power", power_pct=0.5)
        await client.call("rdk:component:motor", "other", "is_moving")  # this method is not monitored by the session
        await trio.sleep(1.9)
        assert STOPPED == []
        await trio.sleep(5)
        ((when, name, _),) = STOPPED
        assert name == "mine"
        assert when - begun <= 2.1
        with pytest.raises(MachineError, match="SESSION_EXPIRED") as caught:
            await client.call("rdk:component:motor", "mine", "set_power", power_pct=0.5)
        assert caught.value.kind is ErrorKind.INVALID


async def test_calls_in_flight_are_bounded_per_resource(
    nursery: trio.Nursery, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REQUESTS_LIMIT_VARIABLE, "100")
    outcomes: list[Any] = []
    async with open_machine({"components": [motor("a"), motor("b")]}, registry=registry()) as memory:
        await settle(memory)
        for _ in range(memory.serving.dispatch.requests_limit):
            nursery.start_soon(go_for, memory, "a", outcomes)
        await wait_all_tasks_blocked()
        with pytest.raises(MachineError, match=r"motor/a has 100 of 100 calls in flight, .* \(100 GoFor\)") as caught:
            await memory.client().call("rdk:component:motor", "a", "is_moving")
        assert caught.value.kind is ErrorKind.EXHAUSTED
        await memory.client().call("rdk:component:motor", "b", "is_moving")
        nursery.cancel_scope.cancel()


async def test_maintenance_holds_a_configuration_back(autojump_clock: MockClock) -> None:
    document = {"components": [SENSOR, motor("m")], "maintenance": WINDOW}
    Permission.readings = {"allowed": False}
    async with open_machine(document, registry=registry()) as memory:
        await settle(memory)  # the first document is never held back
        driver = memory.machine.roster.find("m").resource
        memory.write({**document, "components": [SENSOR, motor("m", speed=2.0)], "network": {"bind_address": ":7"}})
        await settle(memory)
        status = memory.machine.status()
        assert "allowed is false" in status.config.pending
        assert not status.restart_allowed
        assert memory.machine.roster.find("m").resource is driver
        assert memory.graph.snapshot()["internal/rpc"].runs == 2  # the listening port changes at once
        Permission.readings = {"allowed": True}
        await trio.sleep(RETRY_INTERVAL + 1)
        await settle(memory)
        status = memory.machine.status()
        assert status.config.pending == ""
        assert status.restart_allowed
        assert memory.machine.roster.find("m").resource.attributes.speed == 2.0


async def test_shutdown_stops_the_machine(autojump_clock: MockClock) -> None:
    async with open_machine({"components": [motor("m")]}, registry=registry()) as memory:
        await settle(memory)
        await memory.client().call(ROBOT, "", "shutdown")
        assert memory.machine.lifecycle.stopping.is_set()
        await trio.sleep_forever()  # ends when the graph ends
    assert [name for _, name, _ in STOPPED] == ["m"]


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("m", None, ""),
        ("rdk:component:motor/m", None, ""),
        ("n", ErrorKind.NOT_FOUND, "no resource 'n'"),
        ("motr", ErrorKind.NOT_FOUND, "did you mean 'motor'"),
        ("twin", ErrorKind.INVALID, "full name"),
    ],
)
async def test_find_by_name(name: str, kind: ErrorKind | None, words: str, autojump_clock: MockClock) -> None:
    twins = [motor("twin"), {**SENSOR, "name": "twin"}]
    async with open_machine({"components": [motor("m"), motor("motor"), *twins]}, registry=registry()) as memory:
        await settle(memory)
        if kind is None:
            assert memory.machine.roster.find(name).name.name == "m"
            return
        with pytest.raises(MachineError, match=words) as caught:
            memory.machine.roster.find(name)
        assert caught.value.kind is kind


async def test_a_machine_logs_what_the_check_finds_once(autojump_clock: MockClock) -> None:
    trigger = {"name": "t", "event": {"type": "part_on"}, "notifications": []}
    job = {"name": "j", "schedule": "1h", "resource": "nobody", "method": "Stop"}
    document = {"components": [motor("m", nix=1)], "jobs": [job], "triggers": [trigger]}
    capture = LogCapture()
    async with open_machine({}, registry=registry()) as memory:
        memory.machine.log = structlog.wrap_logger(None, processors=[capture])
        memory.write(document)
        await wait_all_tasks_blocked()
    checked = check_document(decode_document(json.dumps(document).encode()), registry())
    assert len(checked.problems) == 1
    assert len(checked.warnings) == 2
    events = ("warning about the configuration", "mistake in the configuration")
    logged = sorted(str(entry["problem"]) for entry in capture.entries if entry["event"] in events)
    assert logged == sorted(map(str, (*checked.problems, *checked.warnings)))


async def test_a_file_without_a_revision_gets_one_from_its_content() -> None:
    def revision(text: str) -> str:
        document = with_revision(decode_document(text.encode()), text.encode()).document
        assert document is not None
        return document.revision

    assert revision('{"debug": true, "log": []}').startswith("file-")
    assert revision('{"debug": true, "log": []}') == revision('{ "log":[],\n"debug":true}')
    assert revision('{"debug": true}') != revision('{"debug": false}')
    assert revision('{"revision": "7"}') == "7"
    secret = '{"components": [{"name": "a", "type": "sensor", "model": "fake", "attributes": {"password": "%s"}}]}'
    assert revision(secret % "one") == revision(secret % "two")
