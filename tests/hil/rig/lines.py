"""JSON objects, one per line, and the Unix sockets of QEMU that carry them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import trio

from tests.hil.rig.vm import VirtualMachine


class Gone(Exception):
    """The machine ended or closed a socket."""


async def connect(vm: VirtualMachine, name: str) -> trio.SocketStream:
    """Connect to a socket that QEMU is about to create."""
    path = vm.folder / name
    while True:
        try:
            return await _connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            if vm.process is None or vm.process.poll() is not None:
                raise Gone(f"QEMU ended:\n{vm.log()}") from None
            await trio.sleep(0.01)  # another process creates the socket, without an event


async def _connect(path: Path) -> trio.SocketStream:
    sock = trio.socket.socket(trio.socket.AF_UNIX)
    try:
        await sock.connect(str(path))
    except BaseException:
        sock.close()
        raise
    return trio.SocketStream(sock)


async def receive_lines(stream: trio.abc.ReceiveStream) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the decoded objects; skip lines that are not JSON."""
    rest = b""
    async for part in stream:
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            yield message
