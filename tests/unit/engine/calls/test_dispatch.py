"""Calls to a resource end with the reason that fits: the resource stops, the call is cancelled by its id."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from engine.registry import Registry
from engine.resource import Extra
from runtime.server.memory import MemoryMachine, open_machine
from schema.errors import ErrorKind, MachineError
from schema.names import Model
from tests.unit.engine.calls.test_dispatch_fairness import DOCUMENT, MOTOR, Endless, registry


async def call(memory: MemoryMachine, errors: list[MachineError]) -> None:
    with pytest.raises(MachineError) as caught:
        await memory.client().call(MOTOR, "m", "go_for", rpm=1.0, revolutions=1.0)
    errors.append(caught.value)


async def test_a_call_ends_when_its_resource_stops(mock_clock: MockClock) -> None:
    errors = list[MachineError]()
    async with open_machine(DOCUMENT, registry=registry()) as memory, trio.open_nursery() as nursery:
        await memory.machine.lifecycle.running.wait()
        nursery.start_soon(call, memory, errors)
        await wait_all_tasks_blocked()
        host = memory.machine.roster.hosts[f"{MOTOR}/m"]
        memory.write({})
        await wait_all_tasks_blocked()
    assert [error.kind for error in errors] == [ErrorKind.UNAVAILABLE]
    assert "motor/m is stopping or not ready" in str(errors[0])
    assert not host.calls


async def test_a_call_that_is_cancelled_by_its_id_while_its_resource_stops(mock_clock: MockClock) -> None:
    errors = list[MachineError]()
    async with open_machine(DOCUMENT, registry=registry()) as memory, trio.open_nursery() as nursery:
        await memory.machine.lifecycle.running.wait()
        nursery.start_soon(call, memory, errors)
        await wait_all_tasks_blocked()
        (operation,) = memory.machine.traffic.operations.running()
        operation.cancel()
        memory.machine.roster.hosts[f"{MOTOR}/m"]._open(is_open=False)
        await wait_all_tasks_blocked()
    assert [error.kind for error in errors] == [ErrorKind.CANCELLED]


class Careless(Endless):
    """Fail in one of two tasks when cancelled."""

    async def go_for(self, rpm: float, revolutions: float, *, extra: Extra = None) -> None:
        async def turn() -> None:
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("the bus is gone")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(turn)
            nursery.start_soon(trio.sleep_forever)


async def test_a_call_that_fails_when_it_is_cancelled_has_ended_for_its_resource(autojump_clock: MockClock) -> None:
    careless = Registry({})
    careless.add(Careless.API, Model.parse("test"), Careless)

    async def fail(memory: MemoryMachine) -> None:
        with pytest.raises(ValueError, match="the bus is gone"):
            await memory.client().call(MOTOR, "m", "go_for", rpm=1.0, revolutions=1.0)

    async with open_machine(DOCUMENT, registry=careless) as memory, trio.open_nursery() as nursery:
        await memory.machine.lifecycle.running.wait()
        host = memory.machine.roster.hosts[f"{MOTOR}/m"]
        ends: list[Callable[[], None]] = [memory.machine.traffic.operations.cancel_all, lambda: memory.write({})]
        for end in ends:
            nursery.start_soon(fail, memory)
            await wait_all_tasks_blocked()
            assert len(host.calls) == 1
            end()
            await wait_all_tasks_blocked()
            assert not host.calls
