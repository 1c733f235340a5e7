"""The process of wpa_supplicant: a child of a task, or a unit of systemd that goes on without the agent."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, NoReturn, Protocol

import trio

from netmgr.programs import ENVIRONMENT, run
from nursery_graph import ProcessGroup, process_group
from schema import ErrorKind, MachineError
from support import unwrap
from support.files import CREATE, DELETE, Inotify

PROGRAM: Final = ("wpa_supplicant",)
START_LIMIT: Final = 10.0
"""Seconds until its socket exists."""
SOCKET: Final = "global"
SETTINGS: Final = "settings"
"""File for each interface: what cannot be set later. Without it wpa_supplicant answers Wi-Fi Direct requests."""
_SETTINGS_TEXT: Final = "p2p_disabled=1\n"
UNIT_PREFIX: Final = "machine-wifi-"
"""Beginning of the names of its units, before the number of the radio."""
_ANSWER_LIMIT: Final = 2.0  # seconds for an answer of one that ran before
_END_LIMIT: Final = 5.0  # seconds for a process that an ended agent has left
_KILL_TIME: Final = 3.0  # seconds between SIGTERM, at which it leaves its networks, and SIGKILL
_LAST_WORDS: Final = 1.0  # seconds to read what it has written before its end
_KEPT: Final = 2000  # bytes of its messages; it writes no secrets unless asked to with -K
_SHOWN: Final = 200  # characters of them in an error


class RunningSupplicant(Protocol):
    """Running wpa_supplicant."""

    @property
    def path(self) -> Path:
        """Global control socket."""
        ...

    async def wait(self) -> NoReturn:
        """Wait until it ends; raise the reason (UNAVAILABLE)."""
        ...


class Child:
    """wpa_supplicant as a child process."""

    def __init__(self, path: Path, group: ProcessGroup) -> None:
        self.path = path
        self._group = group
        self._output = b""

    async def wait(self) -> NoReturn:
        """Wait until it ends; raise the reason (UNAVAILABLE)."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read)
            status = await self._group.wait()
            nursery.cancel_scope.deadline = trio.current_time() + _LAST_WORDS
        lines = [line.strip() for line in self._output.decode(errors="replace").splitlines()]
        reason = " ".join(line for line in lines[-3:] if line)[-_SHOWN:] or f"status {status}"
        raise MachineError(f"wpa_supplicant has ended: {reason}", kind=ErrorKind.UNAVAILABLE)

    async def _read(self) -> None:
        assert self._group.process.stdout is not None
        while data := await self._group.process.stdout.receive_some():
            self._output = (self._output + data)[-_KEPT:]


class SupplicantUnit:
    """wpa_supplicant as a unit of systemd; `descriptor` is that of its process."""

    def __init__(self, path: Path, unit: str, descriptor: int) -> None:
        self.path = path
        self._unit, self._descriptor = unit, descriptor

    async def wait(self) -> NoReturn:
        """Wait until it ends; raise the reason (UNAVAILABLE)."""
        await trio.lowlevel.wait_readable(self._descriptor)
        raise MachineError(
            "wpa_supplicant has ended", kind=ErrorKind.UNAVAILABLE, remedy=f"see journalctl -u {self._unit}"
        )


@asynccontextmanager
async def running(folder: Path, program: Sequence[str] = PROGRAM, unit: str = "") -> AsyncIterator[RunningSupplicant]:
    """Run wpa_supplicant without an interface, with its sockets in `folder`.

    The folder is created for root only. A child process ends with the block; a wpa_supplicant that uses the folder is
    ended first, because it was left by an agent that was killed. With `unit`, the name of a transient unit of systemd,
    it goes on after the block, and the next block with this name continues with it and its interfaces; `stop_units`
    ends it. UNAVAILABLE if wpa_supplicant is not installed or does not start.
    """
    path = folder / SOCKET
    async with AsyncExitStack() as stack:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # noqa: ASYNC240 - below /run, in memory
            watcher = Inotify(CREATE | DELETE)
            stack.callback(watcher.close)
            watcher.watch({folder})
            command = [*program, "-g", str(path)]
            process = await (
                _unit(stack, unit, command, path, watcher) if unit else _child(stack, command, path, watcher)
            )
        except OSError as error:
            raise MachineError(
                f"{program[0]} cannot be run: {error.strerror}", kind=ErrorKind.UNAVAILABLE,
                remedy="install it: apt-get install wpasupplicant",
            ) from None  # fmt: skip
        yield process


async def _child(stack: AsyncExitStack, command: Sequence[str], path: Path, watcher: Inotify) -> RunningSupplicant:
    await _end_former(path, watcher)
    _clear(path.parent)
    group = await stack.enter_async_context(
        process_group(
            command, grace=_KILL_TIME, env=ENVIRONMENT, cwd="/",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
    )  # fmt: skip
    process = Child(path, group)
    await _created(process, watcher)
    return process


async def _unit(
    stack: AsyncExitStack, unit: str, command: Sequence[str], path: Path, watcher: Inotify
) -> RunningSupplicant:
    descriptor = await _open_process(unit)
    if descriptor is not None and await _answers(path):
        stack.callback(os.close, descriptor)
        for entry in path.parent.glob("client-*"):  # of the agent that ran before
            entry.unlink()
        return SupplicantUnit(path, unit, descriptor)
    if descriptor is not None:
        os.close(descriptor)
        await stop_unit(unit)
    await _end_former(path, watcher)
    _clear(path.parent)
    await run(["systemd-run", "--quiet", "--collect", f"--unit={unit}", "--service-type=exec", *command])
    descriptor = await _open_process(unit)
    if descriptor is None:
        raise MachineError(
            "wpa_supplicant has ended at once", kind=ErrorKind.UNAVAILABLE, remedy=f"see journalctl -u {unit}"
        )
    stack.callback(os.close, descriptor)
    process = SupplicantUnit(path, unit, descriptor)
    await _created(process, watcher)
    return process


async def _open_process(unit: str) -> int | None:
    """Return a descriptor of the main process of a unit; None if it does not run. The caller closes it."""
    pid = (await run(["systemctl", "show", "--property=MainPID", "--value", unit])).strip()
    if not pid.isdecimal() or pid == "0":
        return None
    try:
        return os.pidfd_open(int(pid))
    except ProcessLookupError:
        return None


async def stop_unit(unit: str) -> None:
    """End the wpa_supplicant that runs as this unit, if it does."""
    await run(["systemctl", "stop", unit])


async def stop_units(folder: Path) -> None:
    """End every wpa_supplicant that runs as a unit with sockets below `folder`; nothing happens if there is none.

    UNAVAILABLE or TIMEOUT if systemd refuses.
    """
    if folder.is_dir():  # noqa: ASYNC240 - below /run, in memory
        await run(["systemctl", "stop", f"{UNIT_PREFIX}*"])


def can_be_unit() -> bool:
    """Return whether the end of a process that is no child can be observed: Linux 5.3 and later."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


async def _created(process: RunningSupplicant, watcher: Inotify) -> None:
    """Wait until its socket exists. TIMEOUT after START_LIMIT seconds, or the reason if the process ends before."""
    try:
        with trio.fail_after(START_LIMIT):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(process.wait)
                while not process.path.exists():
                    await watcher.wait({process.path})
                nursery.cancel_scope.cancel()
    except trio.TooSlowError:
        raise MachineError(f"wpa_supplicant has not started within {START_LIMIT:g} s", kind=ErrorKind.TIMEOUT) from None
    except BaseExceptionGroup as group:
        raise unwrap(group) from None


async def _answers(path: Path) -> bool:
    """Return whether wpa_supplicant answers at its global socket."""
    mine = path.with_name("client-check")
    mine.unlink(missing_ok=True)
    try:
        with trio.move_on_after(_ANSWER_LIMIT), trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_DGRAM) as sock:
            await sock.bind(str(mine))
            await sock.sendto(b"PING", str(path))
            return await sock.recv(16) == b"PONG\n"
    except OSError:
        pass
    finally:
        mine.unlink(missing_ok=True)
    return False


async def _end_former(path: Path, watcher: Inotify) -> None:
    with trio.move_on_after(_END_LIMIT), trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_DGRAM) as socket:
        try:
            await socket.sendto(b"TERMINATE", str(path))
        except OSError:  # nobody listens
            return
        while path.exists():  # noqa: ASYNC240 - below /run, in memory
            await watcher.wait({path})


def _clear(folder: Path) -> None:
    folder.chmod(0o700)
    for entry in folder.iterdir():
        entry.unlink()
    (folder / SETTINGS).write_text(_SETTINGS_TEXT)
