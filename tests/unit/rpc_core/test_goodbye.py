"""What a connection logs of the peer's GOAWAY."""

from __future__ import annotations

import logging

import pytest
import trio

from rpc.call import ServerCore
from tests.unit.rpc_core.echo import EchoService
from tests.unit.rpc_core.test_against_h2 import connected, message, request


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
