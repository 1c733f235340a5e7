from __future__ import annotations

import uuid
from functools import partial

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from engine.calls.operations import Operation, Operations
from schema.errors import ErrorKind, MachineError


async def hold(operations: Operations, opid: str | None = None, seconds: float = 600.0, **facts: str) -> None:
    with operations.enter("/a.B/C", opid=opid, seconds=seconds, **facts):
        await trio.sleep_forever()


async def begun(nursery: trio.Nursery, operations: Operations, **facts: str) -> Operation:
    before = {item.id for item in operations.running()}
    nursery.start_soon(lambda: hold(operations, **facts))
    await wait_all_tasks_blocked()
    (new,) = [element for element in operations.running() if element.id not in before]
    return new


async def swallow(operations: Operations, outcomes: list[ErrorKind], **facts: str) -> None:
    try:
        await hold(operations, **facts)
    except MachineError as error:
        outcomes.append(error.kind)


async def test_a_call_is_listed_while_it_runs(nursery: trio.Nursery) -> None:
    operations = Operations()
    operation = await begun(nursery, operations, resource="rdk:component:motor/m", session="s")
    status = operation.status()
    assert (status.method, status.resource, status.session) == ("/a.B/C", "rdk:component:motor/m", "s")
    assert uuid.UUID(status.id).version == 4
    with operations.enter("/a.B/D", seconds=600.0) as own:
        assert operations.running(excluding=own) == [operation]
        assert operations.running() == [operation, own]
    assert operations.running() == [operation]


async def test_cancel_ends_the_call_with_cancelled(nursery: trio.Nursery) -> None:
    operations = Operations()
    outcomes: list[ErrorKind] = []
    nursery.start_soon(swallow, operations, outcomes)
    await wait_all_tasks_blocked()
    (operation,) = operations.running()
    operations.find(operation.id).cancel()
    await wait_all_tasks_blocked()
    assert outcomes == [ErrorKind.CANCELLED]
    assert operations.running() == []


async def test_an_outer_cancellation_is_not_reported_as_one_by_id() -> None:
    operations = Operations()
    with trio.CancelScope() as scope:
        scope.cancel()
        await hold(operations)
    assert scope.cancelled_caught
    assert operations.running() == []


async def test_the_deadline_ends_the_call_with_timeout(autojump_clock: MockClock) -> None:
    operations = Operations()
    with pytest.raises(MachineError, match="longer") as caught:
        await hold(operations, seconds=600.0)
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert trio.current_time() == pytest.approx(600.0)


async def test_wait_returns_when_the_operation_ends(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    operations = Operations()
    outcomes: list[ErrorKind] = []
    nursery.start_soon(swallow, operations, outcomes)
    await wait_all_tasks_blocked()
    (operation,) = operations.running()
    waited = trio.Event()

    async def wait() -> None:
        await operations.find(operation.id).wait()
        waited.set()

    nursery.start_soon(wait)
    await wait_all_tasks_blocked()
    assert not waited.is_set()
    operation.cancel()
    await waited.wait()
    await operation.wait()  # the operation has ended: this returns at once


@pytest.mark.parametrize("call", ["find", "enter"])
def test_unknown_and_malformed_ids_are_refused(call: str) -> None:
    operations = Operations()
    begin = operations.find if call == "find" else partial(operations.enter, "/a.B/C", seconds=1.0)
    with pytest.raises(MachineError) as caught:
        begin(opid="nothing")
    assert caught.value.kind is (ErrorKind.NOT_FOUND if call == "find" else ErrorKind.INVALID)


async def test_a_nested_call_joins_the_operation_of_its_id(nursery: trio.Nursery) -> None:
    operations = Operations()
    opid = str(uuid.uuid4())
    outcomes: list[ErrorKind] = []
    nursery.start_soon(lambda: swallow(operations, outcomes, opid=opid, resource="outer"))
    await wait_all_tasks_blocked()
    nursery.start_soon(lambda: swallow(operations, outcomes, opid=opid.upper(), resource="inner"))
    await wait_all_tasks_blocked()
    (operation,) = operations.running()
    assert (operation.id, operation.resource) == (opid, "outer")
    operation.cancel()
    await wait_all_tasks_blocked()
    assert outcomes == [ErrorKind.CANCELLED] * 2
    assert operations.running() == []


async def test_a_call_that_joins_a_cancelled_operation_is_cancelled_too() -> None:
    operations = Operations()
    opid = str(uuid.uuid4())

    async def nested() -> None:
        with operations.enter("/a.B/C", opid=opid, seconds=600.0) as outer:
            outer.cancel()
            await hold(operations, opid=opid)

    with pytest.raises(MachineError) as caught:
        await nested()
    assert caught.value.kind is ErrorKind.CANCELLED


async def test_cancel_all_spares_the_caller(nursery: trio.Nursery) -> None:
    operations = Operations()
    outcomes: list[ErrorKind] = []
    for _ in range(3):
        nursery.start_soon(swallow, operations, outcomes)
    await wait_all_tasks_blocked()
    with operations.enter("/a.B/StopAll", seconds=600.0) as own:
        operations.cancel_all(excluding=own)
        await wait_all_tasks_blocked()
        assert outcomes == [ErrorKind.CANCELLED] * 3
        assert operations.running() == [own]
    nursery.cancel_scope.cancel()


async def test_ids_are_random_uuids() -> None:
    ids = {Operations().enter("m", seconds=1.0).operation.id for _ in range(100)}
    assert len(ids) == 100
    for text in ids:
        number = uuid.UUID(text)
        assert (str(number), number.version, number.variant) == (text, 4, uuid.RFC_4122)
