"""The interface between the queue of jobs and what runs them.

An engine gets an `Order`, whose folder holds the dataset, and runs the program until it ends. Everything that the
program reports goes to the sink, in order. `run` returns an outcome for everything that the program can do, and raises
only if the engine itself does not work. If `run` is cancelled, the program gets time to write a checkpoint, and when
`run` has returned, nothing of it runs any more. Running the same order again continues from the checkpoint.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import trio

from training.jobs.events import JobEvent

MIB: Final = 1024 * 1024
Sink = Callable[[Sequence[JobEvent]], Awaitable[None]]
Connect = Callable[[trio.abc.Stream], Awaitable[None]]
CLOUD: Final = ("127.0.0.1", 8080)
"""Address of the cloud inside, for programs with `connect`."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one job. Sizes are in bytes, times in seconds."""

    memory: int = 4096 * MIB  # private memory of each process that can be written, and memory of all together
    address_space: int | None = 64 * 1024 * MIB  # of each process, with what is only reserved; None: not limited
    cpu: int = 4 * 3600  # processor time of each process
    wall: float = 12 * 3600.0
    disk: int = 8192 * MIB  # content of the folders that the program may write; of strangers: at most own_disk
    files: int = 100_000  # entries in these folders
    processes: int = 64
    lines: int = 20_000  # lines of output altogether
    rate: int = 200  # lines in a second, on average
    grace: float = 10.0  # from the request to end to the kill, for a checkpoint

    @property
    def own_disk(self) -> int:
        """Size of the disk of a program of strangers: it is memory, and half of that is left for the processes."""
        computer = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return min(self.disk, self.memory // 2, computer // 2)


@dataclass(frozen=True, slots=True)
class Order:
    """A program to run. In `folder`, `dataset` is read, `output` and `checkpoints` are written."""

    id: str
    folder: Path
    module: str  # started as `python -m`
    arguments: tuple[str, ...]  # paths in them are the same inside
    environment: Mapping[str, str] = field(default_factory=dict)
    program: Path | None = None  # folder of the module, for a program of the tenant; None for one of this project
    python: Path | None = None  # the interpreter of an environment for `program`; None: that of the engine
    readable: tuple[Path, ...] = ()  # further files that the program reads, such as pretrained weights
    connect: Connect | None = None  # serves what the program opens to CLOUD, which is its whole network; None: none
    online: bool = False  # use the network of this computer, for programs of this project only
    lock: Path | None = None  # every process of the program holds it; see training.engine.lock
    bounds: Bounds = Bounds()

    @property
    def dataset(self) -> Path:
        """Folder of the pictures, with the description `dataset.jsonl`."""
        return self.folder / "dataset"

    @property
    def output(self) -> Path:
        """Folder that becomes the model."""
        return self.folder / "output"

    @property
    def checkpoints(self) -> Path:
        """Folder that survives an interruption."""
        return self.folder / "checkpoints"


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a program ended: with an empty reason, well."""

    reason: str = ""


class Engine(Protocol):
    """Runs programs of jobs. `run` may be called by several tasks, for different orders."""

    async def run(self, order: Order, sink: Sink) -> RunOutcome:
        """Run the program until it ends; see the module."""
        ...
