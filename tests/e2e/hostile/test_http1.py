"""Each row against one port, which keeps serving another client; no resource is left open."""

from __future__ import annotations

import logging
import re
import socket
import struct
import tracemalloc

import pytest
import trio

from rpc.http.limits import HttpLimits
from rpc.limits import Limits
from tests.e2e.hostile.http1_rows import ROWS
from tests.e2e.port.support import port
from tests.helpers.hostile import Row

pytestmark = pytest.mark.slow
LIMITS = Limits(handshake_timeout=0.3)
MEMORY = 8 << 20  # bytes that server, attacker and good client may use in addition to what they start with
HTTP = HttpLimits(head_timeout=0.3, body_grace=0.3, idle_timeout=0.3, linger=0.2)


async def attack(stream: trio.SocketStream, row: Row) -> bytes:
    received = b""
    try:
        await stream.send_all(row.data)
        if row.ends == "half-closes":
            await stream.send_eof()
        elif row.ends == "resets":
            stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return b""
        while more := await stream.receive_some(65536):
            received += more
    except trio.BrokenResourceError:
        pass
    return received


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_row(row: Row, caplog: pytest.LogCaptureFixture) -> None:
    served, answered = 0, 0.0

    async def ask(stream: trio.SocketStream) -> bool:
        """Return whether an answer arrived in time; on a busy computer it may not."""
        received, began = b"", trio.current_time()
        try:
            await stream.send_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
            while not received.endswith(b"http 1.1 "):  # the body of the page
                received += (more := await stream.receive_some(1000))
                if not more:
                    break
        except trio.BrokenResourceError:
            more = b""
        if more:
            assert received.startswith(b"HTTP/1.1 200")
            return True
        quiet = max(trio.current_time() - began, began - answered)
        assert not received, "the good client was cut off"
        assert quiet > HTTP.idle_timeout * 0.8, "the good client was cut off"
        return False

    async def keep_asking() -> None:
        nonlocal served, answered
        while True:
            async with await server.connect() as stream:
                answered = trio.current_time()
                while await ask(stream):
                    served, answered = served + 1, trio.current_time()
                    await trio.sleep(0.005)  # a pace, not a synchronization

    async with port(limits=LIMITS, http=HTTP) as server, trio.open_nursery() as good:
        await server.raw(b"GET / HTTP/1.0\r\nhost: localhost\r\n\r\n")
        good.start_soon(keep_asking)
        tracemalloc.start()
        try:
            async with await server.connect() as stream:
                received = await attack(stream, row)
            before = served
            while served < before + 3 or server.core.statistics.open_connections > 1:  # noqa: ASYNC110
                await trio.sleep(0.002)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        good.cancel_scope.cancel()
    assert peak < MEMORY
    answered = received.startswith(b"HTTP/1.1 ")
    assert row.answer.allows(int(received.split()[1]) if answered else None), received[:300]
    assert len(re.findall(rb"HTTP/1\.1 \d", received)) <= 1
    assert b"Traceback" not in received
    if row.reason:
        assert row.reason in server.core.statistics.refusals
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
