"""The local engine in tests: orders of programs that misbehave, and what they print."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.processes import command_lines
from training.engine.local import LocalEngine
from training.engine.port import MIB, Bounds, Order, RunOutcome
from training.jobs.events import JobEvent, Log

SCRIPT: Final = Path(__file__).with_name("script.py")
SMALL: Final = Bounds(
    memory=512 * MIB,
    cpu=20,
    wall=30.0,
    disk=64 * MIB,
    files=500,
    processes=10,
    lines=300,
    rate=10_000,
    grace=2.0,
)


class Ran:
    def __init__(self) -> None:
        self.events: list[JobEvent] = []
        self.printed = trio.Event()

    async def sink(self, events: Sequence[JobEvent]) -> None:
        self.events += events
        self.printed.set()

    @property
    def log(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Log)]


def order_of(folder: Path, do: str, path: object = "", *, bounds: Bounds = SMALL, script: Path = SCRIPT) -> Order:
    program = folder.parent / "program" / "model"
    program.mkdir(parents=True, exist_ok=True)
    shutil.copy(script, program / "training.py")
    folder.mkdir(exist_ok=True)
    order = Order(
        folder.name,
        folder,
        "model.training",
        (f"--model_output_directory={folder / 'output'}", f"--do={do}", f"--path={path}"),
        program=program.parent,
        bounds=bounds,
    )
    order.dataset.mkdir(exist_ok=True)
    (order.dataset / "dataset.jsonl").write_text("{}\n")
    return order


async def run(order: Order) -> tuple[RunOutcome, Ran]:
    ran = Ran()
    return await LocalEngine(python=sys.executable).run(order, ran.sink), ran


@pytest.fixture(scope="module")
def isolates(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip tests where programs cannot be isolated."""
    if reason := trio.run(LocalEngine(python=sys.executable).probe, tmp_path_factory.mktemp("probe") / "p"):
        pytest.skip(reason)


def processes_of(folder: Path) -> list[int]:
    return [
        process
        for process, command in command_lines()
        if process != os.getpid() and str(folder).encode() in command and b"LocalEngine" not in command
    ]
