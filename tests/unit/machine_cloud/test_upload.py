"""Log messages on the way to the cloud: how long they wait."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import trio
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from trio.testing import MockClock

from rpc.api.client import find_method
from rpc.api.convert import values
from rpc.api.memory import MemoryChannel
from telemetry.logs.entry import Entry
from telemetry.logs.outbox_sink import OutboxSink, Upload
from uplink.contact import Contact
from uplink.dial import CloudAddress
from uplink.log_upload import MAX_DELAY, SERVICE, upload_logs


def entry(message: str, **fields: Any) -> Entry:
    return Entry(1, 0.0, 20, "test", "", message, fields)


class Logs:
    """A cloud that accepts logs when it is reachable, its address, and a queue with one message."""

    part = "part-1"

    def __init__(self, *entries: Entry) -> None:
        self.entries = entries or (entry("hello"),)
        self.there = False
        self.refuses: Callable[[Sequence[str]], Status | None] = lambda messages: None
        self.kept: list[str] = []
        self.values: list[Any] = []  # of all fields
        self.tries: list[float] = []
        self.contact = Contact()
        self.acknowledged = trio.Event()

    # ---- as a router

    def get(self, path: str) -> Handler | None:
        method = find_method(SERVICE, "log")
        assert path == method.path
        return Handler(self._log, Cardinality.UNARY_UNARY, method.request_class, method.reply_class)

    async def _log(self, stream: Any) -> None:
        sent = await stream.recv_message()
        request = type(sent).FromString(sent.SerializeToString())  # as if it had been sent
        self.tries.append(trio.current_time())
        if not self.there:
            raise GRPCError(Status.UNAVAILABLE, "gone")
        messages = [item.message for item in request.logs]
        if (status := self.refuses(messages)) is not None:
            raise GRPCError(status, "no")
        self.kept += messages
        self.values += [values.read_struct(field)["Value"] for element in request.logs for field in element.fields]
        await stream.send_message(find_method(SERVICE, "log").reply_class())

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[Any]:
        yield MemoryChannel(self)

    # ---- as a queue

    async def next(self, limit: int) -> Upload:
        if self.acknowledged.is_set():
            await trio.sleep_forever()
        return Upload(self.entries, len(self.entries), 100)

    def acknowledge(self, last: int) -> None:
        self.acknowledged.set()


async def test_logs_are_tried_ever_more_seldom_and_at_once_when_the_cloud_is_back(autojump_clock: MockClock) -> None:
    cloud = Logs()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(upload_logs, cast("OutboxSink", cloud), cast("CloudAddress", cloud))
        await trio.sleep(600)
        assert cloud.tries[-1] - cloud.tries[-2] >= MAX_DELAY / 2
        cloud.contact.mark_reached()  # it connected, but does not accept logs yet: the pauses start again
        await trio.sleep(2)
        assert len([item for item in cloud.tries if item > 600]) >= 2
        await trio.sleep(600)
        cloud.there = True
        now = trio.current_time()
        cloud.contact.mark_reached()
        await cloud.acknowledged.wait()
        assert trio.current_time() == now
        nursery.cancel_scope.cancel()


async def test_a_message_that_the_cloud_refuses_holds_up_no_others(autojump_clock: MockClock) -> None:
    cloud = Logs(*(entry(str(number)) for number in range(20)))
    cloud.there = True
    cloud.refuses = lambda messages: Status.INVALID_ARGUMENT if "7" in messages else None
    await _all(cloud)
    assert cloud.kept == [str(number) for number in range(20) if number != 7]


async def test_a_cloud_that_takes_little_at_once_gets_all(autojump_clock: MockClock) -> None:
    cloud = Logs(*(entry(str(number)) for number in range(20)))
    cloud.there = True
    cloud.refuses = lambda messages: Status.RESOURCE_EXHAUSTED if len(messages) > 3 or len(cloud.tries) < 9 else None
    await _all(cloud)
    assert cloud.kept == [str(number) for number in range(20)]
    assert cloud.tries[-1] > 0, "a single one that is too much for now waits"


async def test_fields_that_the_protocol_cannot_carry_are_text(autojump_clock: MockClock) -> None:
    deep: Any = 1
    for _ in range(60):
        deep = {"a": [deep]}
    cloud = Logs(entry("x", deep=deep, huge=10**400, lists=[[[1]]], yes=True))
    cloud.there = True
    await _all(cloud)
    assert cloud.values == [json.dumps(deep), str(10**400), [[[1]]], True]


async def _all(cloud: Logs) -> None:
    """Return when everything has been acknowledged."""
    with trio.fail_after(600):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(upload_logs, cast("OutboxSink", cloud), cast("CloudAddress", cloud))
            await cloud.acknowledged.wait()
            nursery.cancel_scope.cancel()


async def test_a_pause_ends_by_itself(autojump_clock: MockClock) -> None:
    contact = Contact()
    contact.mark_reached()  # before the pause: does not count
    assert not await contact.pause(5)
    assert trio.current_time() == 5
