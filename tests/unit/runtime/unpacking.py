"""Preparation of a module's archive as machine-server does it, by the real clock: it uses a thread and a process."""

from __future__ import annotations

from pathlib import Path

import trio

from runtime.programs import archive
from runtime.programs.command import Program
from support.worker import Worker


def prepare(source: Path, packages: Path, name: str = "demo") -> Program:
    """Return the program in an archive, after unpacking it."""

    async def main() -> Program:
        worker = Worker("archives")
        async with worker.opened():
            return await archive.prepare(source, packages, name, worker)

    return trio.run(main)
