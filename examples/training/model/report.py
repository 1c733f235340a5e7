"""Report metrics and progress of a training script. Copy this file into your script; it needs nothing else.

Each function prints a line that the cloud recognizes. Everything else that a script prints is a line of its log.
"""

import json
import os
from pathlib import Path


def metric(name: str, value: float, step: int = 0) -> None:
    """Report a value, such as the loss after `step` steps. The page of the job shows a curve of each name."""
    _print({"kind": "metric", "name": name, "value": float(value), "step": step})


def progress(done: int, total: int) -> None:
    """Report that `done` of `total` equal parts of the work are done, from which the time left is estimated."""
    _print({"kind": "progress", "done": done, "total": total})


def checkpoint_dir() -> Path:
    """Return the folder whose files are there again if the job is interrupted and started again."""
    return Path(os.environ["TRAINING_CHECKPOINTS"])


def _print(content: "dict[str, object]") -> None:
    print("::training " + json.dumps(content), flush=True)
