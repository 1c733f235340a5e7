"""Channels between programs of this computer, as every operating system must offer them. Real channels."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from rpc.network.local import open_local_listener, open_local_stream
from schema.errors import MachineError

LARGE = 1 << 20
ON_WINE = sys.platform == "win32" and hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")
CLIENT = """
import sys, trio
from pathlib import Path
from rpc.network.local import open_local_stream

async def main():
    stream = await open_local_stream(Path(sys.argv[1]))
    await stream.send_all(b"from another process")
    await trio.sleep_forever()

trio.run(main)
"""


@asynccontextmanager
async def pair(path: Path) -> AsyncIterator[tuple[trio.abc.Stream, trio.abc.Stream]]:
    """Yield both ends of a connection: that of the client, and that of the listener."""
    listener = await open_local_listener(path)
    async with listener:
        client = await open_local_stream(path)
        async with client, await listener.accept() as served:
            yield client, served


async def everything(stream: trio.abc.Stream) -> bytes:
    received = b""
    while part := await stream.receive_some(65536):
        received += part
    return received


async def test_bytes_arrive_in_both_directions(tmp_path: Path) -> None:
    with trio.fail_after(10):
        async with pair(tmp_path / "c") as (client, served):
            await client.send_all(b"a request\n")
            assert await served.receive_some(5) == b"a req"
            await served.send_all(b"an answer")
            assert await client.receive_some(100) == b"an answer"
            assert await served.receive_some(100) == b"uest\n"


async def test_a_large_message_waits_for_its_reader(tmp_path: Path) -> None:
    with trio.fail_after(20):
        async with pair(tmp_path / "c") as (client, served), trio.open_nursery() as nursery:
            sent = trio.Event()

            async def send() -> None:
                await client.send_all(b"x" * LARGE)
                sent.set()
                await client.aclose()

            nursery.start_soon(send)
            await wait_all_tasks_blocked()
            assert not sent.is_set()
            assert await everything(served) == b"x" * LARGE


async def test_both_ends_send_at_once(tmp_path: Path) -> None:
    async def send(stream: trio.abc.Stream) -> None:
        await stream.send_all(b"y" * LARGE)

    async def receive(stream: trio.abc.Stream) -> None:
        count = 0
        while count < LARGE:
            count += len(await stream.receive_some(65536))

    with trio.fail_after(20):
        async with pair(tmp_path / "c") as ends, trio.open_nursery() as nursery:
            for end in ends:
                nursery.start_soon(send, end)
                nursery.start_soon(receive, end)


async def test_the_end_comes_after_all_bytes(tmp_path: Path) -> None:
    with trio.fail_after(10):
        async with pair(tmp_path / "c") as (client, served):
            await served.send_all(b"the last words")
            await served.aclose()
            assert await everything(client) == b"the last words"


async def test_sending_to_a_closed_end_fails(tmp_path: Path) -> None:
    with trio.fail_after(10):
        async with pair(tmp_path / "c") as (client, served):
            await served.aclose()
            with pytest.raises(trio.BrokenResourceError):
                await client.send_all(b"z" * LARGE)


async def test_a_closed_end_cannot_be_used(tmp_path: Path) -> None:
    async with pair(tmp_path / "c") as (client, _):
        await client.aclose()
        with pytest.raises(trio.ClosedResourceError):
            await client.send_all(b"z")
        with pytest.raises(trio.ClosedResourceError):
            await client.receive_some(1)
        await client.aclose()


async def test_waiting_for_bytes_can_be_cancelled(tmp_path: Path) -> None:
    with trio.fail_after(10):
        async with pair(tmp_path / "c") as (client, served):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.receive_some, 1)
                await wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
            await served.send_all(b"later")
            assert await client.receive_some(10) == b"later"


async def test_waiting_for_clients_can_be_cancelled(tmp_path: Path) -> None:
    with trio.fail_after(10):
        async with await open_local_listener(tmp_path / "c") as listener:
            for _ in range(3):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(listener.accept)
                    await wait_all_tasks_blocked()
                    nursery.cancel_scope.cancel()
            client = await open_local_stream(tmp_path / "c")
            async with client, await listener.accept() as served:
                await client.send_all(b"1")
                assert await served.receive_some(1) == b"1"


async def test_a_client_that_leaves_before_it_is_accepted_does_not_end_the_listener(tmp_path: Path) -> None:
    with trio.fail_after(10):
        async with await open_local_listener(tmp_path / "c") as listener:
            await (await open_local_stream(tmp_path / "c")).aclose()
            async with await listener.accept() as served:
                assert await everything(served) == b""
            client = await open_local_stream(tmp_path / "c")
            async with client, await listener.accept():
                pass


async def test_many_clients_at_once(tmp_path: Path) -> None:
    async def echo(stream: trio.abc.Stream) -> None:
        async with stream:
            await stream.send_all(await stream.receive_some(10))

    async def ask(number: int) -> None:
        async with await open_local_stream(tmp_path / "c") as stream:
            await stream.send_all(b"%d" % number)
            assert await stream.receive_some(10) == b"%d" % number

    with trio.fail_after(20):
        listener = await open_local_listener(tmp_path / "c")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, echo, [listener])
            async with trio.open_nursery() as clients:
                for number in range(40):
                    clients.start_soon(ask, number)
            nursery.cancel_scope.cancel()


@pytest.mark.skipif(ON_WINE, reason="Wine ignores that only the first instance may be created")
async def test_only_the_first_program_can_listen(tmp_path: Path) -> None:
    async with await open_local_listener(tmp_path / "c"):
        with pytest.raises(MachineError, match="cannot listen on"):
            await open_local_listener(tmp_path / "c")


async def test_without_a_listener_there_is_an_error(tmp_path: Path) -> None:
    async with await open_local_listener(tmp_path / "c"):
        pass
    with pytest.raises(OSError):
        await open_local_stream(tmp_path / "c")


async def test_the_end_of_a_killed_program_is_noticed(tmp_path: Path) -> None:
    with trio.fail_after(40):
        async with await open_local_listener(tmp_path / "c") as listener:
            command = [sys.executable, "-c", CLIENT, str(tmp_path / "c")]
            process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE)
            async with await listener.accept() as served:
                assert await served.receive_some(100) == b"from another process"
                process.kill()
                with trio.CancelScope(shield=True):
                    assert await everything(served) == b""
            await process.wait()
