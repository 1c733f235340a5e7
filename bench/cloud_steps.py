"""machine-cloud with its event loop measured: `python -m bench.cloud_steps [OPTIONS OF machine-cloud]`.

Writes into the file that MACHINE_BENCH_STEPS names, while the cloud runs: the longest step of a task in processor time,
the name of that task, and the longest time on the clock that other tasks waited until they had their turn.
"""

from __future__ import annotations

import gc
import mmap
import os
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import trio

FORMAT: Final = struct.Struct("dd96s")


class _Steps(trio.abc.Instrument):
    """Measures every step of all tasks."""

    def __init__(self, shared: mmap.mmap) -> None:
        self._shared = shared
        self._turn = self._begin = 0.0
        self._collected = ""  # what the garbage collector did in this step
        gc.callbacks.append(self._collecting)

    def _collecting(self, phase: str, info: Mapping[str, int]) -> None:
        if phase == "stop" and info["generation"]:
            self._collected = f" collecting generation {info['generation']}"

    def after_io_wait(self, timeout: float) -> None:
        """Note when the tasks that can run have their turn."""
        self._turn = time.perf_counter()

    def before_io_wait(self, timeout: float) -> None:
        """Record a turn of all tasks that has ended."""
        took = time.perf_counter() - self._turn
        step, longest, name = FORMAT.unpack_from(self._shared)
        if self._turn and took > longest:
            FORMAT.pack_into(self._shared, 0, step, took, name)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Note when a step of a task begins."""
        self._begin, self._collected = time.thread_time(), ""

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Record a step that has ended."""
        took = time.thread_time() - self._begin
        step, longest, _ = FORMAT.unpack_from(self._shared)
        if took > step:
            FORMAT.pack_into(self._shared, 0, took, longest, (task.name + self._collected).encode()[-96:])


class Steps:
    """The reader's side."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(FORMAT.size))
        self._shared = _mapped(path)

    def take(self) -> tuple[float, float, str]:
        """Return the longest step, the longest turn in seconds, and the task, since the last call."""
        step, turn, name = FORMAT.unpack_from(self._shared)
        FORMAT.pack_into(self._shared, 0, 0.0, 0.0, b"")
        return step, turn, name.rstrip(b"\0").decode(errors="replace")


def _mapped(path: Path) -> mmap.mmap:
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), FORMAT.size)


def main() -> None:
    """Run machine-cloud."""
    shared = _mapped(Path(os.environ["MACHINE_BENCH_STEPS"]))
    run = trio.run

    def measured(function: Any, *arguments: Any, **options: Any) -> Any:
        return run(function, *arguments, **options, instruments=[_Steps(shared)])

    trio.run = measured  # type: ignore[assignment]
    from cloud.server.cli import main as cloud

    cloud()


if __name__ == "__main__":
    main()
