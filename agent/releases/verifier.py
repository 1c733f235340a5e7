"""Verification of metadata in the worker, or in a process of its own that ends with it.

`tuf` and what it imports need some 20 MiB, which a process does not return. An agent that looks up a release once a
week would keep them for the rest of its life. So it starts this module as a program. The process reads a step and its
arguments from its standard input and writes the result to its standard output, each as a message of msgpack after its
length, until its input ends. So it also ends when the agent is killed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import trio

from agent.releases import chain
from agent.releases.chain import MetadataFile, RootChain, Untrusted
from agent.releases.signed import Listing
from schema import ErrorKind, MachineError
from support import Worker
from uplink.releases import MAX_METADATA

Run = Callable[..., Awaitable[Any]]
"""`await run(step, *arguments)` carries out a step, a key of STEPS, and returns its result."""
Verifying = Callable[[Path], AbstractAsyncContextManager[Run]]
"""Opens a verification of the metadata below a folder."""

MAX_MESSAGE: Final = MAX_METADATA + 4096
"""Bytes of a message: one file of metadata, and some fields."""
STEPS: Final[Mapping[str, Any]] = {
    "open": int,
    "pin": None,
    "add_root": int,
    "load_timestamp": None,
    "add_timestamp": None,
    "load_snapshot": MetadataFile | None,
    "add_snapshot": None,
    "load_targets": MetadataFile | None,
    "add_targets": None,
    "releases": Listing,
}
"""Steps, with the type of their results: `open(now)` returns the version of the newest trusted root, `pin(content)`
pins a root, and the others are methods of Chain."""
ENVIRONMENT: Final = {"LC_ALL": "C.UTF-8"}
_LENGTH: Final = 4  # bytes
_PROGRAM: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; from agent.releases.verifier import serve; serve(sys.argv[1])"
)


class _Answer(msgspec.Struct, array_like=True):
    """Result of a step, or why it has failed: `error` is the kind of a MachineError, or "os" for an OSError."""

    result: msgspec.Raw = msgspec.Raw(b"\xc0")
    error: str = ""
    message: str = ""
    remedy: str = ""
    untrusted: bool = False
    number: int | None = None  # errno
    file: str | None = None


class _Steps:
    """Carries out steps. Blocks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._chain: RootChain | None = None

    def run(self, step: str, *arguments: Any) -> Any:
        if step == "pin":
            return chain.pin(self._folder, *arguments)
        if step == "open":
            self._chain = RootChain(self._folder, *arguments)
            return self._chain.root_version
        return getattr(self._chain, step)(*arguments)


def in_worker(worker: Worker) -> Verifying:
    """Return a Verifying that uses a thread of this process, which must be open."""

    @asynccontextmanager
    async def opened(folder: Path) -> AsyncIterator[Run]:
        steps = _Steps(folder)
        yield lambda *step: worker.run(partial(steps.run, *step))

    return opened


@asynccontextmanager
async def in_process(folder: Path) -> AsyncIterator[Run]:
    """Verify in a process while the context is open. Raises MachineError (UNAVAILABLE) if it cannot run, or ends."""
    from nursery_graph import process_group  # large, and not needed while the agent is idle

    # -I ignores variables and the folder of the user, -S packages of the system: the paths are those of this process.
    command = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(folder), *sys.path]
    context = process_group(command, cwd="/", env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    async with AsyncExitStack() as stack:
        try:
            group = await stack.enter_async_context(context)
        except OSError as error:
            raise _failed(error.strerror or str(error)) from None
        assert group.process.stdin is not None
        assert group.process.stdout is not None
        yield partial(_ask, group.process.stdin, group.process.stdout)


async def _ask(into: trio.abc.SendStream, out: trio.abc.ReceiveStream, step: str, *arguments: Any) -> Any:
    request = msgspec.msgpack.encode([step, *arguments])
    try:
        await into.send_all(len(request).to_bytes(_LENGTH) + request)
        length = int.from_bytes(await _exactly(out, _LENGTH))
        if length > MAX_MESSAGE:
            raise _failed(f"an answer has {length:,} bytes")
        answer = msgspec.msgpack.decode(await _exactly(out, length), type=_Answer)
    except (trio.BrokenResourceError, EOFError):
        raise _failed("it has ended; its messages are in the log of machine-agent") from None
    if answer.error == "os":
        raise OSError(answer.number, answer.message, answer.file)
    if answer.error:
        cls = Untrusted if answer.untrusted else MachineError
        raise cls(answer.message, kind=ErrorKind(answer.error), remedy=answer.remedy)
    return msgspec.msgpack.decode(answer.result, type=STEPS[step])


async def _exactly(stream: trio.abc.ReceiveStream, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = await stream.receive_some(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


def _failed(reason: str) -> MachineError:
    return MachineError(
        f"the process that verifies releases has failed: {reason}", kind=ErrorKind.UNAVAILABLE,
        remedy="the request is repeated",
    )  # fmt: skip


def serve(folder: str) -> None:
    """Carry out the steps that arrive at the standard input, until it ends. Entry point of the process."""
    steps, into, out = _Steps(Path(folder)), sys.stdin.buffer, sys.stdout.buffer
    while (head := into.read(_LENGTH)) and len(head) == _LENGTH:
        request = into.read(int.from_bytes(head))
        answer = msgspec.msgpack.encode(_answer(steps, request))
        out.write(len(answer).to_bytes(_LENGTH) + answer)
        out.flush()


def _answer(steps: _Steps, request: bytes) -> _Answer:
    step, *arguments = msgspec.msgpack.decode(request)
    if step == "open":
        arguments = [msgspec.convert(arguments[0], datetime)]
    try:
        result = steps.run(step, *arguments)
    except MachineError as error:
        return _Answer(
            error=error.kind.value, message=error.message, remedy=error.remedy, untrusted=isinstance(error, Untrusted)
        )
    except OSError as error:
        return _Answer(error="os", message=error.strerror or str(error), number=error.errno, file=error.filename)
    return _Answer(msgspec.Raw(msgspec.msgpack.encode(result)))
