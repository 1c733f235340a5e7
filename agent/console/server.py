"""The control channel of the agent. Only its owner can connect: who may do that may already do everything here."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import structlog
import trio

from agent.console.protocol import MAX_LINE, Reply, decode_request, encode, failure
from rpc.network import open_local_listener
from schema import ErrorKind, MachineError

REQUEST_LIMIT: Final = 10.0  # seconds until the request is complete
MAX_CLIENTS: Final = 16

Command: TypeAlias = Callable[[Mapping[str, Any]], AsyncGenerator[Any, None]]
"""A command: takes the arguments, yields values that can be encoded as JSON, and may raise MachineError."""

_log = structlog.get_logger("agent.console")


async def serve(
    path: Path,
    commands: Mapping[str, Command],
    *,
    task_status: trio.TaskStatus[list[trio.abc.Listener[trio.abc.Stream]]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Answer requests on the channel `path` until cancelled. Raises MachineError if it cannot be opened.

    A command ends when its client closes the connection.
    """
    listener = await open_local_listener(path)
    clients = trio.CapacityLimiter(MAX_CLIENTS)
    # The socket is not removed at the end: a stale one is replaced at the next start.
    await trio.serve_listeners(partial(_serve_client, commands, clients), [listener], task_status=task_status)


async def _serve_client(
    commands: Mapping[str, Command], clients: trio.CapacityLimiter, stream: trio.abc.Stream
) -> None:
    async with stream:
        try:
            clients.acquire_nowait()
        except trio.WouldBlock:
            return
        try:
            line = None
            with trio.move_on_after(REQUEST_LIMIT):
                line = await _read_line(stream)
            if line is None:
                return
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_end_with_client, stream, nursery.cancel_scope)
                await _answer(commands, line, stream)
                nursery.cancel_scope.cancel()
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client has gone
        finally:
            clients.release()


async def _read_line(stream: trio.abc.Stream) -> bytes | None:
    """Return the first line; None if the client closes the connection before, or sends more than MAX_LINE bytes."""
    buffer = bytearray()
    while b"\n" not in buffer:
        part = await stream.receive_some(4096)
        if not part or len(buffer) + len(part) > MAX_LINE:
            return None
        buffer += part
    return bytes(buffer).partition(b"\n")[0]


async def _end_with_client(stream: trio.abc.Stream, scope: trio.CancelScope) -> None:
    """Cancel the command when the client closes the connection; further input is ignored."""
    try:
        while await stream.receive_some(4096):
            pass
    except trio.BrokenResourceError:
        pass
    scope.cancel()


async def _answer(commands: Mapping[str, Command], line: bytes, stream: trio.abc.Stream) -> None:
    try:
        request = decode_request(line)
        command = commands.get(request.command)
        if command is None:
            raise MachineError(
                f"{request.command[:60]!r} is not a command of machine-agent",
                kind=ErrorKind.INVALID,
                remedy=f"use one of {', '.join(sorted(commands))}",
            )
        async with aclosing(command(request.arguments)) as values:
            async for value in values:
                await stream.send_all(encode(Reply(value)))
        last = Reply(end=True)
    except MachineError as error:
        last = failure(error)
    except (TypeError, ValueError, KeyError) as error:  # arguments of another version
        _log.exception("a command failed")
        last = failure(MachineError(f"the command failed: {type(error).__name__}: {error}", kind=ErrorKind.INTERNAL))
    await stream.send_all(encode(last))
