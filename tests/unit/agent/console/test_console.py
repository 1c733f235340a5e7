"""The control socket: values, errors, and clients that go away or misbehave."""

from __future__ import annotations

import stat
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from agent.console import server
from agent.console.client import request
from agent.console.protocol import MAX_LINE, Reply, encode
from agent.console.server import MAX_CLIENTS, serve
from rpc.network.local import open_local_stream
from schema.errors import ErrorKind, MachineError


async def count(arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
    for number in range(arguments["to"]):
        yield {"number": number}


async def refuse(arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
    yield "first"
    raise MachineError("the disk is full", kind=ErrorKind.EXHAUSTED, remedy="free some space")


class Endless:
    """A command that ends only with its client."""

    def __init__(self) -> None:
        self.ended = trio.Event()

    async def __call__(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        try:
            yield "begun"
            await trio.sleep_forever()
        finally:
            self.ended.set()


@asynccontextmanager
async def console(path: Path, **commands: server.Command) -> AsyncIterator[Path]:
    async with trio.open_nursery() as nursery:
        await nursery.start(serve, path, {"count": count, "refuse": refuse, **commands})
        yield path
        nursery.cancel_scope.cancel()


async def values(path: Path, command: str, **arguments: Any) -> list[Any]:
    with trio.fail_after(10):
        return [value async for value in request(path, command, **arguments)]


async def test_values_arrive_in_order(tmp_path: Path) -> None:
    async with console(tmp_path / "s") as path:
        assert await values(path, "count", to=3) == [{"number": 0}, {"number": 1}, {"number": 2}]
        assert await values(path, "count", to=0) == []


@pytest.mark.skipif(sys.platform == "win32", reason="the pipe has an access list: see test_local.py")
async def test_only_the_owner_can_connect(tmp_path: Path) -> None:
    async with console(tmp_path / "s") as path:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_the_socket_of_an_agent_that_has_ended_is_replaced(tmp_path: Path) -> None:
    for _ in range(2):
        async with console(tmp_path / "s") as path:
            assert await values(path, "count", to=1) == [{"number": 0}]


async def test_an_error_keeps_kind_and_remedy(tmp_path: Path) -> None:
    async with console(tmp_path / "s") as path:
        with pytest.raises(MachineError, match="the disk is full") as raised:
            await values(path, "refuse")
    assert (raised.value.kind, raised.value.remedy) == (ErrorKind.EXHAUSTED, "free some space")


async def test_an_unknown_command_lists_the_commands(tmp_path: Path) -> None:
    async with console(tmp_path / "s") as path:
        with pytest.raises(MachineError, match="use one of count, refuse"):
            await values(path, "restart")


async def test_wrong_arguments_are_an_error_and_do_not_end_the_server(tmp_path: Path) -> None:
    async with console(tmp_path / "s") as path:
        with pytest.raises(MachineError, match="KeyError"):
            await values(path, "count")
        assert await values(path, "count", to=1) == [{"number": 0}]


async def test_a_command_ends_with_its_client(tmp_path: Path) -> None:
    endless = Endless()
    async with console(tmp_path / "s", endless=endless) as path:
        async with aclosing(request(path, "endless")) as replies:
            assert await anext(replies) == "begun"
        with trio.fail_after(10):
            await endless.ended.wait()


async def test_a_server_that_ends_is_reported(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        await nursery.start(serve, tmp_path / "s", {"endless": Endless()})
        async with aclosing(request(tmp_path / "s", "endless")) as replies:
            await anext(replies)
            nursery.cancel_scope.cancel()
            with pytest.raises(MachineError, match="before its answer was complete"):
                with trio.CancelScope(shield=True), trio.fail_after(10):
                    await anext(replies)


async def test_no_agent(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="does not answer") as raised:
        await values(tmp_path / "s", "status")
    assert raised.value.kind is ErrorKind.UNAVAILABLE


@pytest.mark.parametrize(
    "sent", [b"nonsense\n", b'{"command": 1}\n', b"\xff\n", b'{"arguments": {}}\n', b"[" * 10_000 + b"\n"], ids=range(5)
)
async def test_a_request_that_is_not_valid_is_answered(tmp_path: Path, sent: bytes) -> None:
    async with console(tmp_path / "s") as path, await open_local_stream(path) as stream:
        await stream.send_all(sent)
        with trio.fail_after(10):
            assert b"the request is not valid" in await stream.receive_some(65536)


async def test_a_request_that_is_too_long_ends_the_connection(tmp_path: Path) -> None:
    async with console(tmp_path / "s") as path, await open_local_stream(path) as stream:
        with trio.fail_after(10):
            try:
                await stream.send_all(b"x" * (MAX_LINE + 1))
                assert await stream.receive_some(1) == b""
            except trio.BrokenResourceError:
                pass  # also an end of the connection
            assert await values(path, "count", to=1) == [{"number": 0}]


async def test_a_client_that_sends_nothing_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUEST_LIMIT", 0.01)
    async with console(tmp_path / "s") as path, await open_local_stream(path) as stream:
        with trio.fail_after(10):
            assert await stream.receive_some(1) == b""


async def test_clients_are_limited(tmp_path: Path) -> None:
    async with console(tmp_path / "s", endless=Endless()) as path:
        streams = [await open_local_stream(path) for _ in range(MAX_CLIENTS)]
        await wait_all_tasks_blocked()
        async with await open_local_stream(path) as extra:
            with trio.fail_after(10):
                assert await extra.receive_some(1) == b""
        for stream in streams:
            await stream.aclose()
        await wait_all_tasks_blocked(0.01)
        assert await values(path, "count", to=1) == [{"number": 0}]


def test_a_message_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(MachineError, match="are allowed"):
        encode(Reply("x" * MAX_LINE))
