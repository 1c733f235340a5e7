"""Unpacking of archives of strangers in a child process, with limits on its memory, processor time and duration.

What an archive makes a decompressor do can be neither interrupted nor predicted, but a process can be killed. It is a
new interpreter with few imports, which takes a tenth of a second.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import trio

from support.foreign.stream import BadArchiveError, NoSpaceError
from support.foreign.tar import Bounds
from support.foreign.unpacking import check_system

NICE: Final = 10  # lower priority than what the parent serves
_ROOT: Final = str(Path(__file__).resolve().parents[2])
_PROGRAM: Final = (
    f"import os; os.nice({NICE}); import sys; sys.path.insert(0, {_ROOT!r}); "  # -I: nothing else is on the path
    "from support.foreign.child import main; main()"
)
_COMMAND: Final = (sys.executable, "-I", "-S", "-c", _PROGRAM)
_KILLED: Final = frozenset(-getattr(signal, name, 0) for name in ("SIGXCPU", "SIGKILL", "SIGALRM")) - {0}
_OPTIONS: Final[Mapping[str, Any]] = {"env": {}, "cwd": "/", "start_new_session": True, "stderr": subprocess.DEVNULL}


async def unpack_apart(archive: Path, folder: Path, bounds: Bounds, *, begin: int = 0) -> None:
    """Unpack an archive, which begins at the byte `begin` of a file, into `folder`, which is created.

    The caller removes the folder after an error, and if it is cancelled, which kills the process at once. Raises what
    `support.foreign.unpacking.unpack` raises, and BadArchiveError if the archive takes too much time or memory.
    """
    check_system()
    order = _order(archive, folder, bounds, begin)
    with trio.move_on_after(bounds.wall):
        try:
            done = await trio.run_process(
                _COMMAND, stdin=order, capture_stdout=True, check=False, deliver_cancel=_kill, **_OPTIONS
            )
        except BaseExceptionGroup as group:
            raise _alone(group) from None
        _raise_for(done.returncode, done.stdout, bounds)
        return
    raise _too_long(bounds)


def unpack_apart_blocking(archive: Path, folder: Path, bounds: Bounds, *, begin: int = 0) -> None:
    """Do what `unpack_apart` does, for a worker thread."""
    check_system()
    order = _order(archive, folder, bounds, begin)
    try:
        done = subprocess.run(_COMMAND, input=order, stdout=subprocess.PIPE, timeout=bounds.wall, **_OPTIONS)
    except subprocess.TimeoutExpired:
        raise _too_long(bounds) from None
    _raise_for(done.returncode, done.stdout, bounds)


def _order(archive: Path, folder: Path, bounds: Bounds, begin: int) -> bytes:
    paths = {"archive": str(archive.absolute()), "folder": str(folder.absolute())}
    return json.dumps({**paths, "begin": begin, "bounds": asdict(bounds)}).encode()


async def _kill(process: trio.Process) -> None:
    process.kill()


def _alone(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the only error in a group, which a nursery of Trio puts around it."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _raise_for(status: int, output: bytes, bounds: Bounds) -> None:
    if status in _KILLED:
        raise _too_long(bounds)
    if status or not output:
        raise BadArchiveError(f"the process that unpacks it ended unexpectedly (status {status})")
    answer = json.loads(output)
    if "bad" in answer:
        raise BadArchiveError(answer["bad"])
    if "free" in answer:
        raise NoSpaceError(answer["free"], answer["needed"])
    if answer:
        raise OSError(answer["number"], answer["text"])


def _too_long(bounds: Bounds) -> BadArchiveError:
    return BadArchiveError(f"unpacking it takes more than {bounds.cpu} s of processor time, or {bounds.wall:g} s")
