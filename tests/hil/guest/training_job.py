"""Runs a training script with the engine of the cloud.

`python3 -m tests.hil.guest.training_job FOLDER DO [BOUND=NUMBER ...]`: the script is tests/e2e/training/script.py, and
DO says what it does. Prints a line of JSON for each line of its log, and at the end one with the reason and the control
groups that are left.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trio

from training.engine.groups import open_groups
from training.engine.local import LocalEngine
from training.engine.port import MIB, Bounds, Order
from training.jobs.events import JobEvent, Log

SCRIPT = Path(__file__).parents[2] / "e2e" / "training" / "script.py"


async def main(folder: Path, do: str, *bounds: str) -> None:
    """Run the script in a new folder."""
    program = folder / "program"
    (program / "model").mkdir(parents=True)
    (program / "model" / "__init__.py").touch()
    shutil.copy(SCRIPT, program / "model" / "training.py")
    limits: dict[str, Any] = {name: int(value) for name, _, value in (text.partition("=") for text in bounds)}
    groups = open_groups()
    order = Order(
        "job",
        folder / "job",
        "model.training",
        (f"--do={do}", f"--model_output_directory={folder / 'job' / 'output'}"),
        program=program,
        bounds=Bounds(**{"memory": 256 * MIB, "wall": 120.0, "processes": 20, **limits}),
    )
    order.dataset.mkdir(parents=True)

    async def show(events: Sequence[JobEvent]) -> None:
        for event in events:
            if isinstance(event, Log):
                print(json.dumps({"log": event.message}), flush=True)

    outcome = await LocalEngine(python=sys.executable, groups=groups).run(order, show)
    left = sorted(path.name for path in groups.base.iterdir() if path.is_dir())
    print(json.dumps({"reason": outcome.reason, "groups": left}), flush=True)


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]), *sys.argv[2:])
