"""Delivery of native records, from a mailbox that the test fills: a pipe wakes Trio as wrtc's descriptor does."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from rpc.peers.wrtc_mailbox import BATCH, Mailbox
from schema.errors import MachineError


class FakeBox:
    """Native mailbox."""

    def __init__(self) -> None:
        self.records: deque[Any] = deque()
        self.reader, self.writer = os.pipe()
        self.closed = False
        self.calls: list[tuple[int, tuple[object, ...]]] = []

    def enableWake(self) -> int | None:
        return self.reader

    def ackWake(self) -> bool:
        os.read(self.reader, 4096)
        return True

    def take(self) -> Any:
        return self.records.popleft() if self.records else None

    def close(self) -> None:
        self.closed = True

    def post(self, *records: Any) -> None:
        self.records.extend(records)
        os.write(self.writer, b"x")

    def method(self, box: object, token: int, *arguments: object) -> None:
        assert box is self
        self.calls.append((token, arguments))


class Native:
    """Native object with events."""

    def __init__(self, number: int) -> None:
        self._id = number
        self.box: object = None

    def _bind(self, box: object) -> None:
        self.box = box


@pytest.fixture
def box() -> Iterator[FakeBox]:
    fake = FakeBox()
    yield fake
    os.close(fake.reader)
    os.close(fake.writer)


async def test_results_and_errors_reach_their_calls(box: FakeBox, nursery: trio.Nursery) -> None:
    mailbox = Mailbox(box)
    await nursery.start(mailbox.run)
    results: dict[str, object] = {}

    async def call(argument: str) -> None:
        try:
            results[argument] = await mailbox.call(None, box.method, argument)
        except OSError as error:
            results[argument] = str(error)

    async with trio.open_nursery() as calls:
        for argument in ("first", "second", "third"):
            calls.start_soon(call, argument)
            await wait_all_tasks_blocked()
        tokens = [token for token, _ in box.calls]
        box.post((None, tokens[2], False, None), (None, tokens[0], True, (OSError("no"),)))
        await wait_all_tasks_blocked()
        box.post((None, tokens[1], False, ("yes",)))
    assert results == {"first": "no", "second": "yes", "third": None}
    assert [arguments for _, arguments in box.calls] == [("first",), ("second",), ("third",)]
    assert not mailbox._requests


async def test_a_cancelled_call_leaves_no_request_and_its_record_is_dropped(
    box: FakeBox, nursery: trio.Nursery
) -> None:
    mailbox = Mailbox(box)
    await nursery.start(mailbox.run)
    async with trio.open_nursery() as calls:
        calls.start_soon(mailbox.call, None, box.method)
        await wait_all_tasks_blocked()
        calls.cancel_scope.cancel()
    assert not mailbox._requests
    box.post((None, box.calls[0][0], True, (OSError("late"),)))
    await wait_all_tasks_blocked()
    assert not box.records


async def test_a_native_method_that_raises_leaves_no_request(box: FakeBox) -> None:
    mailbox = Mailbox(box)

    def fail(*_: object) -> None:
        raise TypeError("wrong")

    with pytest.raises(TypeError):
        await mailbox.call(None, fail)
    assert not mailbox._requests


async def test_abandoned_requests_of_an_owner_end(box: FakeBox, nursery: trio.Nursery) -> None:
    mailbox = Mailbox(box)
    owner, other = object(), object()
    ended: list[object] = []

    async def call(owner: object) -> None:
        try:
            await mailbox.call(owner, box.method)
        except MachineError:
            ended.append(owner)

    nursery.start_soon(call, owner)
    nursery.start_soon(call, other)
    await wait_all_tasks_blocked()
    mailbox.abandon(owner, MachineError("closed"))
    await wait_all_tasks_blocked()
    assert ended == [owner]
    assert len(mailbox._requests) == 1
    nursery.cancel_scope.cancel()


async def test_events_reach_the_handler_of_their_object(box: FakeBox, nursery: trio.Nursery) -> None:
    mailbox = Mailbox(box)
    events: list[object] = []
    bound, unbound = Native(1), Native(2)
    number = mailbox.bind(bound, lambda name, arguments: events.append((name, arguments)))
    assert bound.box is box
    await nursery.start(mailbox.run)
    box.post(("open", 0, False, (bound, "yes")), ("open", 0, False, (unbound,)))
    await wait_all_tasks_blocked()
    mailbox.release(number)
    box.post(("close", 0, False, (bound,)))
    await wait_all_tasks_blocked()
    assert events == [("open", ("yes",))]
    assert not box.records
    mailbox.close()
    assert box.closed


async def test_other_tasks_run_between_batches(box: FakeBox, nursery: trio.Nursery) -> None:
    mailbox = Mailbox(box)
    native = Native(1)
    events: list[int] = []
    mailbox.bind(native, lambda _name, arguments: events.append(arguments[0]))
    await nursery.start(mailbox.run)
    box.post(*(("message", 0, False, (native, number)) for number in range(10 * BATCH)))
    seen = []
    while len(events) < 10 * BATCH:
        await trio.lowlevel.checkpoint()
        seen.append(len(events))
    assert max(after - before for before, after in pairwise(seen)) <= 2 * BATCH
    assert events == list(range(10 * BATCH))


async def test_without_a_descriptor_the_mailbox_says_what_to_do(box: FakeBox) -> None:
    box.enableWake = lambda: None  # type: ignore[method-assign]
    with pytest.raises(MachineError) as caught:
        await Mailbox(box).run()
    assert "open files" in caught.value.remedy
