"""The life of modules, in memory and virtual time: start, watchdog, limits, restart, states, order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from runtime.parts.modules.manager import start_limit
from runtime.parts.modules.memory import Behaviour
from schema.errors import ErrorKind, MachineError
from tests.unit.runtime.parts.modules.support import (
    ROBOT,
    SENSOR,
    entry,
    machine,
    process_of,
    ready,
    reason,
    sensor,
    until,
)

Home = dict[str, str]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return {"MACHINE_HOME": str(tmp_path)}


def one_module(**keys: Any) -> dict[str, Any]:
    return {"modules": [entry(**keys)], "components": [sensor("plain", "fake"), sensor("one"), sensor("two")]}


def runs(*behaviours: Behaviour) -> Callable[[str], Behaviour]:
    """Return one behavior for each run of a module; the last one repeats."""
    left = list(behaviours)
    return lambda name: left.pop(0) if len(left) > 1 else left[0]


async def test_its_resources_answer_and_are_removed_before_it_ends(autojump_clock: object, home: Home) -> None:
    async with machine(one_module(), environment=home) as (memory, processes):
        await until(lambda: ready(memory, "plain", "one", "two"))
        process = process_of(processes)
        client = memory.client()
        assert await client.call(SENSOR, "one", "get_readings") == {"pid": process.pid}
        (state,) = memory.machine.status().modules
        assert (state.name, state.state, state.reason) == ("demo", "ready", "")
        assert state.models == ("acme:memory:sensor",)
        (module,) = (await client.call(ROBOT, "", "get_machine_status"))["modules"]
        assert (module["module_name"], module["state"].lower(), module["error"]) == ("demo", "ready", "")
        assert process.built == {"one", "two"}
        memory.write({**one_module(), "components": [sensor("plain", "fake"), sensor("one")]})
        await until(lambda: process.built == {"one"})
        assert process_of(processes) is process
    assert process.built == set()
    assert process.connections == 0


async def test_resources_of_a_starting_module_have_not_failed(autojump_clock: object, home: Home) -> None:
    async with machine(one_module(), runs(Behaviour(start_after=50)), home) as (memory, _):
        await trio.sleep(20)
        states = {resource.name.rpartition("/")[2]: resource.state for resource in memory.machine.status().resources}
        assert states == {"plain": "ready", "one": "unconfigured", "two": "unconfigured"}
        assert "demo (starting)" in reason(memory, "one")
        (state,) = memory.machine.status().modules
        assert state.state == "starting"
        await until(lambda: ready(memory, "one", "two"), 40)


async def test_a_module_that_is_never_ready_has_its_reason_and_is_retried(autojump_clock: object, home: Home) -> None:
    behave = runs(Behaviour(ready=False), Behaviour())
    async with machine(one_module(), behave, {**home, "VIAM_MODULE_STARTUP_TIMEOUT": "30s"}) as (memory, processes):
        await trio.sleep(35)
        assert processes.starts == 2
        await until(lambda: ready(memory, "one"))
    async with machine(one_module(), runs(Behaviour(ready=False)), home) as (memory, processes):
        await trio.sleep(200)
        assert memory.machine.status().modules[0].reason == "starting: it reports that it is not ready yet"
        await trio.sleep(110)
        assert "was not ready within 300 s" in memory.machine.status().modules[0].reason
        assert memory.machine.status().modules[0].consecutive_failures == 1


async def test_a_start_has_its_whole_limit_though_the_machine_was_suspended(
    autojump_clock: MockClock, home: Home
) -> None:
    async with machine(one_module(), runs(Behaviour(start_after=50)), home) as (memory, processes):
        await trio.sleep(20)
        autojump_clock.jump(400)
        await until(lambda: ready(memory, "one", "two"))
        assert processes.starts == 1


async def test_its_end_takes_only_its_resources_and_all_come_back(autojump_clock: object, home: Home) -> None:
    async with machine(one_module(), environment=home) as (memory, processes):
        await until(lambda: ready(memory, "plain", "one", "two"))
        client, first, plain = memory.client(), process_of(processes), memory.machine.roster.hosts[f"{SENSOR}/plain"]
        first.end(3)
        await until(lambda: not ready(memory, "one"), 1)
        with pytest.raises(MachineError) as caught:
            await client.call(SENSOR, "one", "get_readings")
        assert caught.value.kind is ErrorKind.UNAVAILABLE
        assert "demo ended with status 3" in str(caught.value)
        await until(lambda: ready(memory, "one", "two"), 5)
        assert (await client.call(SENSOR, "one", "get_readings"))["pid"] != first.pid
        assert memory.machine.roster.hosts[f"{SENSOR}/plain"] is plain


async def test_pauses_between_restarts_grow_up_to_half_a_minute(autojump_clock: object, home: Home) -> None:
    async with machine(one_module(), runs(Behaviour(exit_after=0)), home) as (memory, processes):
        await trio.sleep(60)
        early = processes.starts
        assert 3 <= early <= 12
        await trio.sleep(600)
        assert 600 / 60 <= processes.starts - early <= 600 / 10
        assert memory.machine.status().modules[0].consecutive_failures >= early


async def test_the_watchdog_finds_a_frozen_process_and_leaves_a_short_pause(autojump_clock: object, home: Home) -> None:
    async with machine(one_module(watchdog="30s"), environment=home) as (memory, processes):
        await until(lambda: ready(memory, "one"))
        first = process_of(processes)
        first.freeze()
        await trio.sleep(25)
        first.thaw()
        await trio.sleep(200)
        assert process_of(processes) is first
        first.freeze()
        with trio.fail_after(30 + 10 + 1):
            await until(lambda: "not answered for 30 s" in str(memory.machine.status().modules[0].reason), 60)
        await until(lambda: ready(memory, "one"), 15)
        assert process_of(processes) is not first


async def test_without_a_watchdog_it_may_be_frozen_for_ever(autojump_clock: object, home: Home) -> None:
    async with machine(one_module(watchdog="0s"), environment=home) as (memory, processes):
        await until(lambda: ready(memory, "one"))
        first = process_of(processes)
        first.freeze()
        await trio.sleep(3000)
        assert process_of(processes) is first
        first.thaw()


async def test_building_does_not_count_as_silence_until_its_limit(autojump_clock: object, home: Home) -> None:
    async with machine(one_module(watchdog="10s"), environment=home) as (memory, processes):
        await until(lambda: ready(memory, "one"))
        first = process_of(processes)
        first.freeze()
        memory.write({**one_module(watchdog="10s"), "components": [sensor("one"), sensor("new")]})
        await trio.sleep(100)
        assert process_of(processes) is first, "a constructor may take as long as a resource may"
        await trio.sleep(60)
        assert first not in processes.running.values()
        await until(lambda: ready(memory, "one", "new"))


async def test_memory_beyond_the_limit(autojump_clock: object, home: Home) -> None:
    async with machine(one_module(limits={"memory_mb": 100}), environment=home) as (memory, processes):
        await until(lambda: ready(memory, "one"))
        first = process_of(processes)
        first.behaviour.memory = 100 * 1024 * 1024
        await trio.sleep(10)
        assert process_of(processes) is first
        first.behaviour.memory += 2 * 1024 * 1024
        await until(lambda: "limits.memory_mb = 100" in memory.machine.status().modules[0].reason, 2)
        await until(lambda: ready(memory, "one"), 5)


async def test_one_resource_that_cannot_be_built_stands_alone(autojump_clock: object, home: Home) -> None:
    behave = runs(Behaviour(refuses=frozenset({"one"})))
    async with machine(one_module(), behave, home) as (memory, processes):
        await until(lambda: ready(memory, "two"))
        await until(lambda: "one cannot be built" in reason(memory, "one"))
        assert process_of(processes).built == {"two"}


async def test_a_client_restarts_it_with_its_resources(autojump_clock: object, home: Home) -> None:
    async with machine(one_module(), environment=home) as (memory, processes):
        await until(lambda: ready(memory, "one"))
        first = process_of(processes)
        await memory.client().call(ROBOT, "", "restart_module", module_name="demo")
        await until(lambda: processes.starts == 2 and ready(memory, "one", "two"))
        assert first.built == set(), "its resources were removed before it ended"


async def test_a_change_of_its_entry_restarts_it_and_nothing_else(autojump_clock: object, home: Home) -> None:
    two = {**one_module(), "modules": [entry(), entry("other")]}
    async with machine(two, environment=home) as (memory, processes):
        await until(lambda: ready(memory, "one") and len(processes.running) == 2)
        first, other = process_of(processes), process_of(processes, "other")
        memory.write({**two, "modules": [entry(env={"A": "1"}), entry("other")]})
        await until(lambda: processes.starts == 3 and ready(memory, "one"))
        assert process_of(processes) is not first
        assert process_of(processes, "other") is other
        memory.write({**two, "modules": [entry("other")]})
        await until(lambda: len(processes.running) == 1)
        assert process_of(processes, "other") is other


async def test_data_of_a_removed_module_is_removed(autojump_clock: object, home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "module-data" / "local" / "demo"
    async with machine(one_module(), environment=home) as (memory, processes):
        await until(lambda: ready(memory, "one"))
        assert folder.is_dir()
        memory.write({**one_module(), "modules": [{"name": "demo", "executable_path": 7}]})
        await until(lambda: not processes.running)
        await trio.sleep(10)
        assert folder.is_dir(), "a mistake removes nothing"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 300), ("20", 20), ("1.5", 1.5), ("2m", 120), ("soon", 300), ("-5s", 300), ("0", 300), ("1.2.3", 300)],
)
def test_the_limit_of_a_start(text: str, expected: float) -> None:
    assert start_limit({"VIAM_MODULE_STARTUP_TIMEOUT": text}) == expected
