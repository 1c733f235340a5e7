"""A program on a new terminal or on pipes. All its processes have ended when the generator is closed."""

from __future__ import annotations

import codecs
import fcntl
import math
import os
import signal
import struct
import subprocess
import termios
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

import trio

from engine import ShellOutput
from models.shell.request import WINDOW_CHANGE, ShellRequest, read_size
from nursery_graph import ProcessGroup, process_group
from schema import ErrorKind, MachineError
from support import side_task

GRACE: Final = 1.0  # seconds between terminating the programs of a shell and killing them
CHUNK: Final = 32 * 1024  # bytes per message
SILENCE_LIMIT: Final = 0.5  # seconds of silence that complete the output of ended programs, even if a daemon holds it
TRAILING_OUTPUT_LIMIT: Final = 1 << 20  # bytes of output after the end: the largest pipe of a user, see pipe(7)
END_OF_FILE: Final = b"\x04"  # Ctrl-D, which a terminal's line discipline interprets as the end of input

# The terminal that a session leader opens becomes its controlling terminal, see tty(4) and credentials(7).
_OPEN_TERMINAL: Final = 'terminal=$1; shift; exec "$@" <>"$terminal" >&0 2>&0'


async def on_terminal(
    argv: Sequence[str], request: ShellRequest, environment: Mapping[str, str], data_in: AsyncIterator[Any]
) -> AsyncGenerator[ShellOutput, None]:
    """Run `argv` on a new terminal with input from `data_in`; ends when the program ends."""
    master, slave = os.openpty()
    try:
        terminal = os.ttyname(slave)
        _resize(master, request.size)
        command = ["/bin/sh", "-c", _OPEN_TERMINAL, "sh", terminal, *argv]
        streams = {"stdin": slave, "stdout": slave, "stderr": slave}
        async with _session(command, request, environment, **streams) as group:
            os.close(slave)
            slave = -1
            async with trio.lowlevel.FdStream(master) as stream:
                master = -1
                decoder = codecs.getincrementaldecoder("utf-8")("replace")
                async with (
                    side_task(partial(_feed_terminal, stream, data_in)) as typing,
                    aclosing(_output(group, [stream], typing.until)) as output,
                ):
                    async for _, data in output:
                        if text := decoder.decode(data):
                            yield ShellOutput(data_out=text)
                if text := decoder.decode(b"", final=True):
                    yield ShellOutput(data_out=text)
    finally:
        for descriptor in (master, slave):
            if descriptor >= 0:
                os.close(descriptor)
    yield ShellOutput(eof=True)


async def on_pipes(
    argv: Sequence[str], request: ShellRequest, environment: Mapping[str, str], data_in: AsyncIterator[Any]
) -> AsyncGenerator[ShellOutput, None]:
    """Run `argv` with `data_in` as its standard input. MachineError (PRECONDITION) for a status other than 0."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    async with _session(argv, request, environment, **pipes) as group:
        process = group.process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        decoders = [codecs.getincrementaldecoder("utf-8")("replace") for _ in range(2)]
        async with (
            side_task(partial(_feed_pipe, process.stdin, data_in)) as feeding,
            aclosing(_output(group, [process.stdout, process.stderr], feeding.until)) as output,
        ):
            async for index, data in output:
                if text := decoders[index].decode(data):
                    yield ShellOutput(data_err=text) if index else ShellOutput(data_out=text)
            status = await feeding.until(group.wait)
        trailing = [decoder.decode(b"", final=True) for decoder in decoders]
    yield ShellOutput(data_out=trailing[0], data_err=trailing[1], eof=True)
    if status:
        outcome = f"was terminated by {signal.Signals(-status).name}" if status < 0 else f"exited with status {status}"
        raise MachineError(f"the command {outcome}", kind=ErrorKind.PRECONDITION)


@asynccontextmanager
async def _session(
    argv: Sequence[str], request: ShellRequest, environment: Mapping[str, str], **streams: Any
) -> AsyncGenerator[ProcessGroup, None]:
    try:
        async with process_group(
            argv,
            grace=GRACE,
            session=True,
            cwd=request.directory,
            env={**environment, **request.environment},
            **streams,
        ) as group:
            yield group
    except FileNotFoundError as error:
        raise MachineError(
            f"{error.filename or argv[0]} does not exist", kind=ErrorKind.PRECONDITION, remedy="correct the path"
        ) from error
    except (PermissionError, NotADirectoryError) as error:
        raise MachineError(
            f"{error.filename or argv[0]}: {error.strerror}", kind=ErrorKind.PRECONDITION, remedy="correct the path"
        ) from error


async def _output(
    group: ProcessGroup, streams: Sequence[trio.abc.ReceiveStream], until: Any
) -> AsyncGenerator[tuple[int, bytes], None]:
    """Yield data of the streams with their index until they end, or until the program has ended and is silent."""
    send, receive = trio.open_memory_channel[tuple[int, bytes]](0)
    ended = False
    waits = [trio.CancelScope() for _ in streams]  # limit the wait for data, not for the consumer

    async def read(index: int, stream: trio.abc.ReceiveStream, out: trio.MemorySendChannel[tuple[int, bytes]]) -> None:
        remaining = TRAILING_OUTPUT_LIMIT
        with out:
            while remaining > 0:
                data = b""
                waits[index] = trio.CancelScope(deadline=trio.current_time() + SILENCE_LIMIT if ended else math.inf)
                with waits[index], suppress(trio.BrokenResourceError):  # EIO: no program has the terminal open
                    data = bytes(await stream.receive_some(CHUNK))
                if not data:
                    return
                await out.send((index, data))
                remaining -= len(data) if ended else 0

    async def collect() -> None:
        nonlocal ended
        async with trio.open_nursery() as nursery:
            with send:
                for index, stream in enumerate(streams):
                    nursery.start_soon(read, index, stream, send.clone())
            await group.wait()
            await group.signal(signal.SIGHUP)  # remaining background programs end with it
            ended = True
            for wait in waits:
                wait.deadline = trio.current_time() + SILENCE_LIMIT

    async with side_task(collect):
        while True:
            try:
                yield await until(receive.receive)
            except trio.EndOfChannel:
                return


async def _feed_terminal(stream: trio.lowlevel.FdStream, data_in: AsyncIterator[Any]) -> None:
    async for item in data_in:
        if isinstance(item, Mapping):
            size = read_size(item) if item.get("message") == WINDOW_CHANGE else None
            if size is not None:
                _resize(stream.fileno(), size)
        elif not await _send(stream, item.encode()):
            return
    await _send(stream, END_OF_FILE)


async def _feed_pipe(stream: trio.abc.SendStream, data_in: AsyncIterator[Any]) -> None:
    async with stream:
        async for item in data_in:
            if not isinstance(item, Mapping) and not await _send(stream, item.encode()):
                return


async def _send(stream: trio.abc.SendStream, data: bytes) -> bool:
    try:
        await stream.send_all(data)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return False  # the program has closed its input
    return True


def _resize(terminal: int, size: tuple[int, int]) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
