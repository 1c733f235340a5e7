"""`machine shell`: opens a terminal on the machine, or runs a command there."""

from __future__ import annotations

import codecs
import os
import re
import signal
import sys
import termios
import tty
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, Final

import click
import trio

from command.connection import EXIT_INTERRUPTED, ROBOT
from schema import ErrorKind, MachineError

if TYPE_CHECKING:
    from rpc.api import ApiClient

API: Final = "rdk:service:shell"
CHUNK: Final = 32 * 1024  # maximum bytes of input in one message
_STATUS: Final = re.compile(r"exited with status (\d+)")


async def service_of(client: ApiClient, service: str) -> str:
    """Return the name of the shell service `service`, or of the only one if `service` is empty. Raises MachineError."""
    from command.machine import facts

    names = [
        resource.name
        for resource in facts.names_of(await client.call(ROBOT, "", "resource_names"))
        if resource.api == API
    ]
    if service in names or (not service and len(names) == 1):
        return service or names[0]
    if names:
        problem = f"no shell service {service!r} is ready" if service else "there are several shell services"
        raise MachineError(problem, kind=ErrorKind.NOT_FOUND, remedy=f"give --service {' or '.join(names)}")
    machine = facts.machine_of(await client.call(ROBOT, "", "get_machine_status"))
    for resource in machine.resources:
        if resource.api == API and service in ("", resource.name):
            reason = resource.reason or f"it is {resource.state}"
            raise MachineError(
                f"the shell service {resource.name!r} of the machine is not ready: {reason}",
                kind=ErrorKind.PRECONDITION,
                remedy="" if resource.reason else "wait until it is ready",
            )
    raise MachineError(
        "the machine has no shell service that is ready",
        kind=ErrorKind.NOT_FOUND,
        remedy=f'add {{"name": "shell", "api": "{API}"}} to the services of its configuration',
    )


async def shell(client: ApiClient, service: str, command: str, directory: str) -> None:
    """Run a shell or a command until it ends. Raises click's Exit with its exit status if that is not 0."""
    name = await service_of(client, service)
    terminal = not command and sys.stdin.isatty()
    extra: dict[str, Any] = {"directory": directory} if directory else {}
    if terminal:
        extra |= {**_size(), "term": os.environ.get("TERM", "")}
    else:
        extra["command"] = command or "exec /bin/sh"
    send, receive = trio.open_memory_channel[Any](0)
    try:
        # Receive Ctrl-C as an event instead of an exception in an arbitrary task. On a terminal, it is an ordinary key.
        with _raw(terminal), trio.open_signal_receiver(signal.SIGINT) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_interrupt, signals)
                nursery.start_soon(_read_input, send)
                if terminal:
                    nursery.start_soon(_follow_size, send.clone())
                replies = client.stream(API, name, "shell", data_in=receive, extra=extra)
                async with aclosing(replies):
                    async for reply in replies:
                        _write(reply)
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        errors = group.subgroup((MachineError, click.exceptions.Exit))
        if errors is None:
            raise
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, MachineError) and (match := _STATUS.search(error.message)):
            raise click.exceptions.Exit(int(match[1])) from None
        raise error from None


def _write(reply: Mapping[str, Any]) -> None:
    for stream, text in ((sys.stdout, reply["data_out"]), (sys.stderr, reply["data_err"])):
        if text:
            stream.buffer.write(text.encode())
            stream.flush()


async def _read_input(send: trio.MemorySendChannel[Any]) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    descriptor = sys.stdin.fileno()
    async with send:
        while True:
            try:
                await trio.lowlevel.wait_readable(descriptor)
            except OSError:  # a regular file, which is always readable
                await trio.lowlevel.checkpoint()
            data = os.read(descriptor, CHUNK)
            if text := decoder.decode(data, final=not data):
                await send.send(text)
            if not data:
                return


async def _interrupt(signals: AsyncIterator[int]) -> None:
    await anext(signals)
    raise click.exceptions.Exit(EXIT_INTERRUPTED)


async def _follow_size(send: trio.MemorySendChannel[Any]) -> None:
    with trio.open_signal_receiver(signal.SIGWINCH) as signals:
        async with send:
            async for _ in signals:
                await send.send({"message": "window-change", **_size()})


def _size() -> dict[str, int]:
    try:
        columns, rows = os.get_terminal_size(sys.stdin.fileno())
    except OSError:
        return {}
    return {"cols": columns, "rows": rows} if columns and rows else {}


@contextmanager
def _raw(enabled: bool) -> Iterator[None]:
    """Set the terminal to raw mode, so that every key, including Ctrl-C, is sent to the machine."""
    if not enabled:
        yield
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor, termios.TCSADRAIN)  # keeps pending input
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
