"""A program of the project as a real process, for tests on Trio."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from tests.e2e.harness import START_LIMIT_S


@asynccontextmanager
async def ready(
    command: Sequence[str],
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    until: str = "",
    cwd: Path | None = None,
) -> AsyncIterator[tuple[trio.Process, str]]:
    """Run `command`; yield the process and its output on MACHINE_READY_FD when it is ready.

    It is ready when that output ends with `until`, or when the descriptor is closed. Its other output is in `log`. It
    is killed at the end if it still runs.
    """
    read, write = os.pipe()
    async with trio.lowlevel.FdStream(read) as saying:
        try:
            with log.open("wb") as output:
                process = await trio.lowlevel.open_process(
                    list(command),
                    stdout=output,
                    stderr=output,
                    pass_fds=[write],
                    cwd=cwd,
                    env={**os.environ, **(env or {}), "MACHINE_READY_FD": str(write)},
                )
        finally:
            os.close(write)
        try:
            said = ""
            with trio.fail_after(START_LIMIT_S):
                async for part in saying:
                    said += part.decode()
                    if until and said.endswith(until):
                        break
            assert said, _printed(log)
            assert said.endswith(until), _printed(log)
            yield process, said
        finally:
            if process.poll() is None:
                process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()


def _printed(log: Path) -> str:
    return log.read_text("utf-8", "replace")
