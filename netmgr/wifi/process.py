"""The process of wpa_supplicant, as a child of a task."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, NoReturn

import trio

from netmgr.programs import ENVIRONMENT
from nursery_graph import ProcessGroup, process_group
from schema.errors import ErrorKind, MachineError
from support.gather import unwrap
from support.inotify import CREATE, DELETE, Inotify

PROGRAM: Final = ("wpa_supplicant",)
START_LIMIT: Final = 10.0
"""Seconds until its socket exists."""
SOCKET: Final = "global"
SETTINGS: Final = "settings"
"""File for each interface: what cannot be set later. Without it wpa_supplicant answers Wi-Fi Direct requests."""
_SETTINGS_TEXT: Final = "p2p_disabled=1\n"
_END_LIMIT: Final = 5.0  # seconds for a process that an ended agent has left
_KILL_TIME: Final = 3.0  # seconds between SIGTERM, at which it leaves its networks, and SIGKILL
_LAST_WORDS: Final = 1.0  # seconds to read what it has written before its end
_KEPT: Final = 2000  # bytes of its messages; it writes no secrets unless asked to with -K
_SHOWN: Final = 200  # characters of them in an error


class Running:
    """Running wpa_supplicant, with its global control socket at `path`."""

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

    async def created(self, watcher: Inotify) -> None:
        """Wait until the socket exists. TIMEOUT after START_LIMIT seconds, or the reason if the process ends before."""
        try:
            with trio.fail_after(START_LIMIT):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self.wait)
                    while not self.path.exists():
                        await watcher.wait({self.path})
                    nursery.cancel_scope.cancel()
        except trio.TooSlowError:
            raise MachineError(
                f"wpa_supplicant has not started within {START_LIMIT:g} s", kind=ErrorKind.TIMEOUT
            ) from None
        except BaseExceptionGroup as group:
            raise unwrap(group) from None

    async def _read(self) -> None:
        assert self._group.process.stdout is not None
        while data := await self._group.process.stdout.receive_some():
            self._output = (self._output + data)[-_KEPT:]


@asynccontextmanager
async def running(folder: Path, program: Sequence[str] = PROGRAM) -> AsyncIterator[Running]:
    """Run wpa_supplicant without an interface, with its sockets in `folder`, and end it with the block.

    The folder is created for root only. A wpa_supplicant that uses it is ended first: it was left by an agent that was
    killed. UNAVAILABLE if wpa_supplicant is not installed or does not start.
    """
    path = folder / SOCKET
    async with AsyncExitStack() as stack:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # noqa: ASYNC240 - below /run, in memory
            watcher = Inotify(CREATE | DELETE)
            stack.callback(watcher.close)
            watcher.watch({folder})
            await _end_former(path, watcher)
            _clear(folder)
            group = await stack.enter_async_context(
                process_group(
                    [*program, "-g", str(path)], grace=_KILL_TIME, env=ENVIRONMENT, cwd="/",
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                )
            )  # fmt: skip
        except OSError as error:
            raise MachineError(
                f"{program[0]} cannot be run: {error.strerror}", kind=ErrorKind.UNAVAILABLE,
                remedy="install it: apt-get install wpasupplicant",
            ) from None  # fmt: skip
        process = Running(path, group)
        await process.created(watcher)
        yield process


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
