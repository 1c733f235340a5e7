"""Run a program of the system with a time limit and bounded output."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Final

import trio

from nursery_graph import process_group
from schema import ErrorKind, MachineError

LIMIT: Final = 30.0
"""Seconds for a program that asks or switches something."""
MAX_OUTPUT: Final = 64 * 1024
"""Bytes of the output; a program that writes more is ended."""
ENVIRONMENT: Final = {"LC_ALL": "C.UTF-8", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
_KILL_TIME: Final = 5.0  # seconds between SIGTERM and SIGKILL
_SHOWN: Final = 300  # characters of a program's message in an error


async def run(command: Sequence[str], *, limit: float = LIMIT) -> str:
    """Run a program and return what it has written; its process group is ended after `limit` and when cancelled.

    UNAVAILABLE if it cannot be run, fails, or writes more than MAX_OUTPUT; TIMEOUT after `limit` seconds. Never pass a
    secret as an argument: every user can read the arguments of programs.
    """
    output = bytearray()
    shown = " ".join(command)
    try:
        with trio.fail_after(limit):
            async with process_group(
                command, grace=_KILL_TIME, daemons=True, env=ENVIRONMENT, cwd="/",
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            ) as group:  # fmt: skip
                assert group.process.stdout is not None
                while data := await group.process.stdout.receive_some():
                    output += data
                    if len(output) > MAX_OUTPUT:
                        raise MachineError(
                            f"`{shown}` has written more than {MAX_OUTPUT >> 10} KiB", kind=ErrorKind.UNAVAILABLE
                        )
                status = await group.wait()
    except trio.TooSlowError:
        raise MachineError(f"`{shown}` did not end within {limit:g} s", kind=ErrorKind.TIMEOUT) from None
    except OSError as error:
        raise MachineError(
            f"{command[0]} cannot be run: {error.strerror}", kind=ErrorKind.UNAVAILABLE, remedy="install it"
        ) from None
    text = output.decode(errors="replace")
    if status:
        reason = " ".join(line.strip() for line in text.splitlines()[-3:])[:_SHOWN] or f"status {status}"
        raise MachineError(f"`{shown}` has failed: {reason}", kind=ErrorKind.UNAVAILABLE)
    return text
