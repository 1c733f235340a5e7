"""Each row against one port; after each the port still serves, and nothing is left open."""

from __future__ import annotations

import logging
import re
import socket
import struct

import pytest
import trio

from rpc.http_limits import HttpLimits
from rpc.limits import Limits
from tests.e2e.hostile.http1_rows import ROWS, Row
from tests.e2e.port.support import port

pytestmark = pytest.mark.slow
LIMITS = Limits(handshake_timeout=0.3)
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
    async with port(limits=LIMITS, http=HTTP) as server:
        async with await server.connect() as stream:
            received = await attack(stream, row)
        answered = received.startswith(b"HTTP/1.1 ")
        assert (received.split()[1].decode() if answered else "") in row.statuses, received[:300]
        assert len(re.findall(rb"HTTP/1\.1 \d", received)) <= 1
        assert b"Traceback" not in received
        assert (await server.raw(b"GET / HTTP/1.0\r\nhost: localhost\r\n\r\n")).startswith(b"HTTP/1.1 200")
        while server.core.statistics.open_connections:
            await trio.lowlevel.checkpoint()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
