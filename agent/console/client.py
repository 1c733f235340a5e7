"""Client of the agent's control channel."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from agent.console.protocol import MAX_LINE, ConsoleRequest, decode_reply, encode, raised
from rpc.network import PRIVILEGED, open_local_stream
from schema import ErrorKind, MachineError


class NoAgentError(MachineError):
    """No agent listens at the channel."""


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[trio.abc.Stream, None]:
    """Connect to the channel while the context is open. NoAgentError if no agent listens; PERMISSION if it refuses."""
    try:
        stream = await open_local_stream(path)
    except PermissionError:
        raise MachineError(
            f"permission denied for {path}", kind=ErrorKind.PERMISSION, remedy=f"run the command {PRIVILEGED}"
        ) from None
    except OSError as error:
        raise NoAgentError(
            f"machine-agent does not answer on {path}: {error.strerror}",
            kind=ErrorKind.UNAVAILABLE,
            remedy="start it with `systemctl start machine-agent`; `machine agent check` says what is wrong",
        ) from None
    async with stream:
        yield stream


async def request(path: Path, command: str, **arguments: Any) -> AsyncGenerator[Any, None]:
    """Send a command and yield its values. Raises the MachineError with which the command ends."""
    async with opened(path) as stream:
        buffer = bytearray()
        try:
            await stream.send_all(encode(ConsoleRequest(command, arguments)))
            while part := await stream.receive_some(65536):
                buffer += part
                while b"\n" in buffer:
                    line, _, rest = buffer.partition(b"\n")
                    buffer = bytearray(rest)
                    reply = decode_reply(bytes(line))
                    if reply.error:
                        raise raised(reply)
                    if reply.end:
                        return
                    yield reply.value
                if len(buffer) > MAX_LINE:
                    break
        except trio.BrokenResourceError:
            pass
    raise MachineError(
        "machine-agent ended the connection before its answer was complete",
        kind=ErrorKind.UNAVAILABLE,
        remedy="run the command again; `machine agent logs` says whether it has restarted",
    )
