"""Controls sdk_program: the unmodified Python SDK on a computer of the scenes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio

PROGRAM: Final = f"{__package__}.sdk_program"
COMMAND_LIMIT = 90.0  # seconds


class Failed(Exception):
    """A command failed in the SDK."""


class Sdk:
    """A running program; created by `sdk`."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self._received = b""

    async def __call__(self, command: str, **arguments: Any) -> Any:
        """Run a command and return its result; Failed with the text of its error."""
        assert self.process.stdin is not None
        await self.process.stdin.send_all(json.dumps([command, arguments]).encode() + b"\n")
        with trio.fail_after(COMMAND_LIMIT):
            while b"\n" not in self._received:
                part = await self._output.receive_some()
                if not part:
                    raise Failed("the program has ended")
                self._received += part
        line, _, self._received = self._received.partition(b"\n")
        result, error = json.loads(line)
        if error:
            raise Failed(error)
        return result

    @property
    def _output(self) -> Any:
        return self.process.stdout


@asynccontextmanager
async def sdk(prefix: list[str], log: Path) -> AsyncIterator[Sdk]:
    """Run the program with a prefix of its command line, such as `Internet.at`."""
    with log.open("ab") as output:
        process = await trio.lowlevel.open_process(
            [*prefix, sys.executable, "-m", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output
        )
    async with process.stdin, process.stdout:  # type: ignore[union-attr]
        try:
            yield Sdk(process)
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
