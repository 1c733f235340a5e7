"""The maintenance window on a whole machine in memory: every way a sensor can fail, and what users see."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from command.machine.facts import machine_of, more_of, standing
from command.machine.show import machine_state
from engine.components.motion.motor import Motor
from engine.components.sensing.sensor import Sensor
from engine.planning.maintenance import ANSWER_LIMIT, FACTS_KEY, REASONS_LIMIT, RETRY_INTERVAL
from engine.registry import Registry
from engine.resource import Attributes, Extra, Started
from runtime.parts.web.health import is_here, restart_status
from runtime.server.memory import MemoryMachine, open_machine
from schema.errors import MachineError
from schema.names import Model

ROBOT = "viam.robot.v1.RobotService"


class Door(Sensor):
    """Return the readings that the test sets."""

    answer: ClassVar[Callable[[], Any]] = lambda: {"open": True}
    wait: ClassVar[float] = 0.0

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        await trio.sleep(self.wait)
        result: Mapping[str, Any] = type(self).answer()
        return result


class Dead(Sensor):
    """Fail to start."""

    async def run(self, *, task_status: Started) -> None:
        raise MachineError("no hardware")


class Speed(Attributes, kw_only=True, frozen=True):
    speed: float = 1.0


class Wheel(Motor):
    Config = Speed

    async def stop(self, *, extra: Extra = None) -> None:
        pass

    async def is_moving(self) -> bool:
        return False


def entry(kind: str, name: str, model: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": f"rdk:component:{kind}", "model": f"rdk:builtin:{model}", "attributes": attributes}


DOOR = entry("sensor", "door", "door")
WINDOW = {"sensor_name": "rdk:component:sensor/door", "maintenance_allowed_key": "open"}


def document(speed: float = 1.0, *others: Mapping[str, Any], window: Mapping[str, Any] | None = WINDOW) -> Any:
    values: dict[str, Any] = {"components": [entry("motor", "wheel", "wheel", speed=speed), *others]}
    return values | ({"maintenance": window} if window is not None else {})


def says(answer: Any, wait: float = 0.0) -> None:
    def give() -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    Door.answer, Door.wait = give, wait


@pytest.fixture(autouse=True)
def _open() -> None:
    says({"open": True})


@asynccontextmanager
async def machine(first: Mapping[str, Any]) -> AsyncIterator[MemoryMachine]:
    registry = Registry({})
    for cls, model in ((Door, "door"), (Dead, "dead"), (Wheel, "wheel")):
        registry.add(cls.API, Model.parse(f"rdk:builtin:{model}"), cls)
    async with open_machine(first, registry=registry) as memory:
        await wait_all_tasks_blocked()
        await memory.machine.lifecycle.running.wait()
        yield memory


async def taken(memory: MemoryMachine) -> None:
    """Wait until the newest document is accepted or held back, even if a sensor uses its whole time limit."""
    await wait_all_tasks_blocked()
    await trio.sleep(ANSWER_LIMIT + 0.1)
    await memory.graph.settled()
    await wait_all_tasks_blocked()


def speed(memory: MemoryMachine) -> float:
    result: float = memory.machine.roster.find("wheel").resource.attributes.speed
    return result


CASES: dict[str, tuple[Any, float, bool, str]] = {
    "true": ({"open": True}, 0, True, "rdk:component:sensor/door says open is true"),
    "false": ({"open": False}, 0, False, "rdk:component:sensor/door says open is false"),
    "no key": ({"closed": True}, 0, False, "the readings of rdk:component:sensor/door have no 'open'"),
    "nothing": ({}, 0, False, "the readings of rdk:component:sensor/door have no 'open'"),
    "a number": ({"open": 1}, 0, False, "open in the readings of rdk:component:sensor/door is int, not true or false"),
    "a text": ({"open": "true"}, 0, False, "is str, not true or false"),
    "null": ({"open": None}, 0, False, "is NoneType, not true or false"),
    "a list": ([True], 0, False, "returned no readings: it returned list, not a mapping"),
    "an error": (MachineError("bus stuck"), 0, False, "returned no readings: bus stuck"),
    "a bug": (ZeroDivisionError(), 0, False, "returned no readings: ZeroDivisionError()"),
    "slow": ({"open": True}, ANSWER_LIMIT - 0.5, True, "says open is true"),
    "too slow": ({"open": True}, ANSWER_LIMIT + 0.5, False, "returned no readings: no answer within 5 s"),
}


@pytest.mark.parametrize("case", CASES)
async def test_readings_of_the_maintenance_sensor(case: str, autojump_clock: MockClock) -> None:
    answer, wait, allowed, reason = CASES[case]
    says(answer, wait)
    async with machine(document(1.0, DOOR)) as memory:
        memory.write(document(2.0, DOOR))
        await taken(memory)
        status = memory.machine.status()
        assert speed(memory) == (2.0 if allowed else 1.0)
        assert bool(status.config.pending) is not allowed
        assert reason in status.maintenance
        assert restart_status(status, "")["restart_allowed"] is allowed


@pytest.mark.parametrize(
    ("others", "window", "allowed", "reason"),
    [
        ((), WINDOW, True, "the sensor rdk:component:sensor/door is not configured"),
        ((DOOR,), None, True, ""),
        ((entry("sensor", "door", "dead"),), WINDOW, False, "door returned no readings: "),
        ((entry("sensor", "door", "acme"),), WINDOW, False, "door returned no readings: "),
        (({"name": "door", "api": "rdk:component:sensor", "model": "a b"},), WINDOW, True, "door has mistakes"),
        (
            (),
            {**WINDOW, "sensor_name": "rdk:component:motor/wheel"},
            True,
            "rdk:component:motor/wheel has no readings: maintenance.sensor_name must name a sensor",
        ),
    ],
)
async def test_where_the_sensor_is_missing_or_broken(
    others: tuple[Mapping[str, Any], ...],
    window: Mapping[str, Any] | None,
    allowed: bool,
    reason: str,
    autojump_clock: MockClock,
) -> None:
    async with machine(document(1.0, *others, window=window)) as memory:
        memory.write(document(2.0, *others, window=window))
        await taken(memory)
        assert speed(memory) == (2.0 if allowed else 1.0)
        assert reason in memory.machine.status().maintenance


async def test_a_sensor_of_a_remote_that_has_not_listed_it_yet(autojump_clock: MockClock) -> None:
    window = {**WINDOW, "sensor_name": "rdk:component:sensor/pi:door"}
    async with machine(document(1.0, window=window)) as memory:
        memory.write(document(2.0, window=window) | {"remotes": [{"name": "pi", "address": "127.0.0.1:1"}]})
        await taken(memory)
        assert speed(memory) == 1.0
        assert "the remote 'pi' has no such resource, or has not listed" in memory.machine.status().config.pending


async def test_the_window_of_the_new_document_counts(autojump_clock: MockClock) -> None:
    """A document without the window also gets past a sensor that never answers again."""
    says({"open": False})
    async with machine(document(1.0, DOOR)) as memory:
        memory.write(document(2.0, DOOR, window=None))
        await taken(memory)
        assert speed(memory) == 2.0
        assert memory.machine.status().maintenance == ""
        memory.write(document(3.0, DOOR))
        await taken(memory)
        assert speed(memory) == 2.0


async def test_the_first_document_is_not_held_back(autojump_clock: MockClock) -> None:
    says({"open": False})
    async with machine(document(1.0, DOOR)) as memory:
        assert speed(memory) == 1.0


async def test_waiting_changes_are_applied_when_the_sensor_allows_it(autojump_clock: MockClock) -> None:
    says({"open": False})
    async with machine(document(1.0, DOOR)) as memory:
        memory.write(document(2.0, DOOR))
        await taken(memory)
        memory.write(document(3.0, DOOR))  # replaces the pending document
        await taken(memory)
        says({"open": True})
        await trio.sleep(RETRY_INTERVAL + 1)
        await wait_all_tasks_blocked()
        assert speed(memory) == 3.0
        assert memory.machine.status().config.pending == ""


async def test_calls_get_the_current_answer(autojump_clock: MockClock) -> None:
    async with machine(document(1.0, DOOR)) as memory:
        await taken(memory)
        says({"open": False})
        assert memory.machine.status().restart_allowed  # this answer may be up to RETRY_INTERVAL old
        await memory.machine.configured.ask_maintenance()
        assert not memory.machine.status().restart_allowed
        memory.write(document(2.0, DOOR))
        await taken(memory)
        assert speed(memory) == 1.0
        says({"open": True})
        await memory.machine.configured.ask_maintenance()  # applies the pending document at once
        await wait_all_tasks_blocked()
        assert speed(memory) == 2.0


async def test_no_restart_while_a_configuration_is_applied(autojump_clock: MockClock) -> None:
    async with machine(document(1.0, DOOR)) as memory:
        await taken(memory)
        memory.machine.configured.applying = True
        await memory.machine.configured.ask_maintenance()
        assert not memory.machine.status().restart_allowed


async def test_machine_status_tells_it(autojump_clock: MockClock) -> None:
    says({"open": False})
    async with machine(document(1.0, DOOR)) as memory:
        memory.write(document(2.0, DOOR))
        await taken(memory)
        _, metadata = await memory.client().call_with_metadata(ROBOT, "", "get_machine_status")
        more = more_of(metadata)
        assert more == json.loads(metadata[FACTS_KEY])
        assert standing(more) == [
            "a newer configuration is pending: rdk:component:sensor/door says open is false",
            "restart not allowed now: rdk:component:sensor/door says open is false",
        ]


async def test_the_wait_of_a_resource_is_reported(autojump_clock: MockClock) -> None:
    orphan = {**entry("motor", "wheel", "wheel"), "depends_on": ["door"]}
    broken = entry("sensor", "door", "doo")
    async with machine({"components": [orphan, broken]}) as memory:
        await wait_all_tasks_blocked()
        seen = await machine_state(memory.client())
        reasons = {resource.name: resource.reason for resource in seen.resources}
        assert reasons["door"].startswith("components.1: no model rdk:builtin:doo")
        assert reasons["wheel"] == f"waiting for rdk:component:sensor/door: {reasons['door']}"


async def test_reasons_are_listed_up_to_a_limit(autojump_clock: MockClock) -> None:
    orphans = [{**entry("motor", f"wheel{number}", "wheel"), "depends_on": ["door"]} for number in range(100)]
    async with machine({"components": [*orphans, entry("sensor", "door", "doo")]}) as memory:
        await wait_all_tasks_blocked()
        _, metadata = await memory.client().call_with_metadata(ROBOT, "", "get_machine_status")
        assert REASONS_LIMIT / 2 < len(metadata[FACTS_KEY]) < REASONS_LIMIT + 500
        assert 5 < len(more_of(metadata)["waiting"]) < 100


@pytest.mark.parametrize("waiting", [None, [], {"rdk:component:motor/left": 1}])
def test_invalid_reasons_of_remotes_are_harmless(waiting: Any) -> None:
    got = machine_of({"resources": [{"name": "rdk:component:motor/left", "state": 2}]}, {"waiting": waiting})
    assert got.resources[0].reason == ("1" if waiting else "")


@pytest.mark.parametrize("metadata", [{}, {FACTS_KEY: "{"}, {FACTS_KEY: "[]"}])
def test_servers_that_tell_nothing_more(metadata: Mapping[str, Any]) -> None:
    assert more_of(metadata) == {}
    assert standing({}) == []
    assert standing({"rejected": "no JSON"}) == ["the newest configuration was rejected: no JSON"]
    assert standing({"maintenance": "m", "restart_allowed": True}) == ["restart allowed: m"]


def test_callers_from_an_address_of_this_computer() -> None:
    from rpc.network.network_interfaces import interfaces

    own = [str(address) for interface in interfaces() for address in interface.addresses]
    assert all(is_here((address, 1)) for address in own)
    assert is_here(("::ffff:127.0.0.1", 1))
    assert not is_here(("192.0.2.250", 1))
    assert not is_here(("nonsense", 1))
    assert not is_here(None)
