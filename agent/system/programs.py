"""Run programs of the system: with a time limit and bounded output, in a clean environment."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import trio

from schema import ErrorKind, MachineError
from support import Worker, ungrouped

LIMIT: Final = 60.0
"""Seconds for a program that only asks or switches something."""
MAX_OUTPUT: Final = 1 << 20
"""Bytes of the output that are kept; a program that writes more fails."""
MAX_TAIL: Final = 64 * 1024
"""Bytes that are kept of the end of a long program's output, and of error messages."""
SCOPE: Final = "machine-agent-apt.scope"
EXISTS: Final = "machine-agent-apt.scope was already loaded"
"""Part of systemd-run's message if the scope exists, because an earlier program runs on."""

_KILL_TIME: Final = 5.0  # seconds between SIGTERM and SIGKILL
_MARGIN: Final = 120.0  # seconds that systemd needs at most to end a program after its limit
_CHUNK: Final = 64 * 1024
_SHOWN: Final = 400  # characters of a program's message in an error
_ENVIRONMENT: Final = {
    "LC_ALL": "C.UTF-8",
    "LANGUAGE": "C",
    "DEBIAN_FRONTEND": "noninteractive",
    "APT_LISTCHANGES_FRONTEND": "none",
}
_NOT_INHERITED: Final = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC")
# `tail` keeps only the end, in memory, and nothing has to read it: the agent may end while the program runs.
_BOUNDED: Final = '{ "$@"; echo "status=$?"; } 2>&1 | exec tail -c ' + str(MAX_TAIL)


class Done(NamedTuple):
    """A program that has ended."""

    status: int  # exit status, or minus the signal that ended it
    output: str
    errors: str = ""  # the end of its standard error; of a program that ran apart it is in `output`

    @property
    def message(self) -> str:
        """What it said last."""
        lines = [line.strip() for line in (self.errors or self.output).splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith(("E:", "dpkg: error"))]
        return " ".join(errors or lines[-3:])[:_SHOWN] or f"exit status {self.status}"


class Programs(Protocol):
    """Runs programs. A fake of it lets tests decide what a system answers."""

    async def run(self, command: Sequence[str], *, limit: float = LIMIT) -> Done:
        """Run a program until it ends; kill it after `limit` seconds (TIMEOUT) and when cancelled.

        UNAVAILABLE if it cannot be run, or writes more than MAX_OUTPUT.
        """
        ...

    async def run_apart(self, command: Sequence[str], *, limit: float) -> Done:
        """Run a program that must not be interrupted in a scope of systemd; its output is the end of what it wrote.

        If cancelled, the program runs on, also when the agent ends, is killed or updated: dpkg must not be interrupted
        halfway. systemd ends it after `limit` seconds. EXHAUSTED if an earlier such program still runs.
        """
        ...


class SystemPrograms:
    """Implements Programs. The output of programs that run apart is in the file `log`."""

    def __init__(self, log: Path, worker: Worker) -> None:
        self._log, self._worker = log, worker
        self.left: list[trio.Process] = []
        """Programs that run on after the call that waited for them was cancelled; their exit status is read later."""

    async def run(self, command: Sequence[str], *, limit: float = LIMIT) -> Done:
        """Run a program until it ends; kill it after `limit` seconds (TIMEOUT) and when cancelled."""
        from nursery_graph import process_group  # large, and not needed while the agent is idle

        output, errors = _Head(), Tail()
        try:
            with trio.fail_after(limit):
                async with process_group(
                    command,
                    grace=_KILL_TIME,
                    daemons=True,  # tools of the system may start services
                    env=environment(),
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                ) as group:
                    with ungrouped(OSError):
                        async with trio.open_nursery() as nursery:
                            for pipe, keep in ((group.process.stdout, output), (group.process.stderr, errors)):
                                assert pipe is not None
                                nursery.start_soon(read_into, pipe, keep)
                    status = await group.wait()
        except trio.TooSlowError:
            raise timeout(command, limit) from None
        except OSError as error:
            raise MachineError(
                f"{command[0]} cannot be run: {error.strerror}", kind=ErrorKind.UNAVAILABLE, remedy="install it"
            ) from None
        if output.exceeded:
            raise MachineError(
                f"`{' '.join(command)}` has written more than {MAX_OUTPUT >> 10} KiB", kind=ErrorKind.UNAVAILABLE
            )
        return Done(status, _text(output.data), _text(errors.data))

    async def run_apart(self, command: Sequence[str], *, limit: float) -> Done:
        """Run a program that must not be interrupted in a scope of systemd; its output is the end of what it wrote."""
        runner = [
            "systemd-run", "--scope", "--quiet", "--collect", f"--unit={SCOPE}", f"--property=RuntimeMaxSec={limit:g}",
        ]  # fmt: skip
        self.left = [process for process in self.left if process.poll() is None]
        descriptor = await self._worker.run(partial(_create, self._log))
        try:
            process = await trio.lowlevel.open_process(
                [*runner, "--", "/bin/sh", "-c", _BOUNDED, "sh", *command],
                env=environment(),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                start_new_session=True,
            )
        except OSError as error:
            raise MachineError(
                f"systemd-run cannot be run: {error.strerror}", kind=ErrorKind.UNAVAILABLE, remedy="install systemd"
            ) from None
        finally:
            os.close(descriptor)
        with trio.move_on_after(limit + _MARGIN) as patience:
            try:
                await process.wait()
            except trio.Cancelled:
                self.left.append(process)
                raise
        text = _text(await self._worker.run(partial(_content, self._log)))
        if patience.cancelled_caught or process.returncode in (-15, -9):
            raise timeout(command, limit)
        if EXISTS in text:
            raise MachineError(
                "a program that machine-agent started earlier to change packages has not ended",
                kind=ErrorKind.EXHAUSTED,
                remedy=f"wait, or look at `systemctl status {SCOPE}`",
            )
        body, _, status = text.rpartition("status=")
        if not status.strip().isdecimal():
            return Done(process.returncode or 1, text)
        return Done(int(status), body)


def checked(command: Sequence[str], done: Done, remedy: str = "") -> str:
    """Return the output of a program. MachineError if it failed."""
    if done.status:
        raise MachineError(
            f"`{' '.join(command)}` has failed: {done.message}", kind=ErrorKind.UNAVAILABLE, remedy=remedy
        )
    return done.output


def timeout(command: Sequence[str], limit: float) -> MachineError:
    """Return the error for a program that has not ended in time."""
    return MachineError(f"`{' '.join(command)}` did not end within {limit:g} s", kind=ErrorKind.TIMEOUT)


class _Head:
    """The first MAX_OUTPUT bytes."""

    def __init__(self) -> None:
        self.data = b""
        self.exceeded = False

    def add(self, data: bytes) -> None:
        self.exceeded = self.exceeded or len(self.data) + len(data) > MAX_OUTPUT
        self.data += data[: MAX_OUTPUT - len(self.data)]


class Tail:
    """The last MAX_TAIL bytes."""

    def __init__(self) -> None:
        self.data = b""

    def add(self, data: bytes) -> None:
        """Append what was read."""
        self.data = (self.data + data)[-MAX_TAIL:]


async def read_into(pipe: trio.abc.ReceiveStream, keep: _Head | Tail) -> None:
    """Read a pipe to its end."""
    while data := await pipe.receive_some(_CHUNK):
        keep.add(bytes(data))


def environment() -> dict[str, str]:
    """Return the environment of all programs."""
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    return {**inherited, **_ENVIRONMENT}


def _create(path: Path) -> int:
    """Open a new file: a program that still writes to the former file does not disturb it."""
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _content(path: Path) -> bytes:
    return path.read_bytes()[-2 * MAX_TAIL :]


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
