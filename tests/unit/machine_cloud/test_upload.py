"""Log messages on their way: how long they wait."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import trio
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from trio.testing import MockClock

from rpc.api.client import find_method
from rpc.api.memory import MemoryChannel
from runtime.cloud.contact import Contact
from runtime.cloud.dial import CloudAddress
from runtime.cloud.upload import MAX_DELAY, SERVICE, upload
from telemetry.entry import Entry
from telemetry.outbox_sink import OutboxSink, Upload


class Logs:
    """A cloud that takes logs when it is there, its address, and a queue with one message."""

    part = "part-1"

    def __init__(self) -> None:
        self.there = False
        self.tries: list[float] = []
        self.contact = Contact()
        self.acknowledged = trio.Event()

    # ---- as a router

    def get(self, path: str) -> Handler | None:
        method = find_method(SERVICE, "log")
        assert path == method.path
        return Handler(self._log, Cardinality.UNARY_UNARY, method.request_class, method.reply_class)

    async def _log(self, stream: Any) -> None:
        await stream.recv_message()
        self.tries.append(trio.current_time())
        if not self.there:
            raise GRPCError(Status.UNAVAILABLE, "gone")
        await stream.send_message(find_method(SERVICE, "log").reply_class())

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[Any]:
        yield MemoryChannel(self)

    # ---- as a queue

    async def next(self, limit: int) -> Upload:
        if self.acknowledged.is_set():
            await trio.sleep_forever()
        return Upload((Entry(seq=1, time=0.0, level=20, logger="test", caller="", message="hello"),), 1)

    def acknowledge(self, last: int) -> None:
        self.acknowledged.set()


async def test_logs_are_tried_ever_more_seldom_and_at_once_when_the_cloud_is_back(autojump_clock: MockClock) -> None:
    cloud = Logs()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(upload, cast("OutboxSink", cloud), cast("CloudAddress", cloud))
        await trio.sleep(600)
        assert cloud.tries[-1] - cloud.tries[-2] >= MAX_DELAY / 2
        cloud.contact.came()  # it came, but takes no logs yet: from the beginning
        await trio.sleep(2)
        assert len([one for one in cloud.tries if one > 600]) >= 2
        await trio.sleep(600)
        cloud.there = True
        now = trio.current_time()
        cloud.contact.came()
        await cloud.acknowledged.wait()
        assert trio.current_time() == now
        nursery.cancel_scope.cancel()


async def test_a_pause_ends_by_itself(autojump_clock: MockClock) -> None:
    contact = Contact()
    contact.came()  # before: does not count
    assert not await contact.pause(5)
    assert trio.current_time() == 5
