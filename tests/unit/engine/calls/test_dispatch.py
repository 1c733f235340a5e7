"""Calls to a resource end with the reason that fits: the resource stops, the call is cancelled by its id."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from runtime.server.memory import MemoryMachine, open_machine
from schema.errors import ErrorKind, MachineError
from tests.unit.engine.calls.test_dispatch_fairness import DOCUMENT, MOTOR, registry


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
