"""Log messages of a connection for the peer's GOAWAY."""

from __future__ import annotations

import logging

import pytest
import trio

from rpc.call import ServerCore
from rpc.http2.server import serve_http2
from tests.unit.rpc.echo import EchoService
from tests.unit.rpc.h2_peer import H2Client
from tests.unit.rpc.http2.test_against_h2 import connected, message, request


@pytest.mark.parametrize(("code", "lines"), [(0, 0), (11, 1)], ids=["no-error", "enhance-your-calm"])
async def test_only_an_error_is_logged(
    code: int, lines: int, caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    """A line for every client that leaves would make `machine logs -f` at debug level feed itself."""
    caplog.set_level(logging.DEBUG, "rpc")
    core = ServerCore(EchoService().__mapping__())
    async with trio.open_nursery() as nursery:
        client = await connected(nursery, core)
        await client.ask(request("Echo"), message("a"))
        caplog.clear()
        client.h2.close_connection(code)
        await client.flush()
        await trio.testing.wait_all_tasks_blocked()
        await client.stream.aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert core.statistics.open_connections == 0
        nursery.cancel_scope.cancel()
    assert len([record for record in caplog.records if "closes the connection" in record.getMessage()]) == lines
    assert len(caplog.records) == lines, caplog.text


PING = b"\0\0\x08\6\0\0\0\0\0" + bytes(8)


@pytest.mark.parametrize(
    ("goaway", "broken", "said"),
    [(False, False, True), (True, True, True), (False, True, False)],
    ids=["closes", "goaway-and-reset", "reset"],
)
async def test_a_peer_that_closes_its_connection_has_said_farewell(
    goaway: bool, broken: bool, said: bool, autojump_clock: trio.testing.MockClock
) -> None:
    """A session is logged as a warning if its client vanished, but not if the client closed it."""
    service = EchoService()
    core = ServerCore(service.__mapping__())
    near, far = trio.testing.memory_stream_pair()

    async def reset() -> None:
        raise trio.BrokenResourceError("connection reset by peer")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_http2, far, core)
        client = H2Client(near)
        await client.start()
        await client.ask(request("Echo"), message("a"))
        peer = service.seen[0].peer
        assert not peer.farewell.said
        if goaway:
            client.h2.close_connection()
            await client.flush()
            await trio.testing.wait_all_tasks_blocked()
        if broken:
            far.receive_stream.receive_some_hook = reset
            await near.send_all(PING)
            await trio.testing.wait_all_tasks_blocked()
        await near.aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert core.statistics.open_connections == 0
        assert peer.farewell.said == said
        nursery.cancel_scope.cancel()
