"""Run a trainer with the arguments of a training script of the registry, which names no labels."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path


def run(
    trainer: Callable[[Sequence[str]], int],
    annotations: str,
    types: Sequence[str],
    arguments: Sequence[str] | None,
    more: Sequence[str] = (),
) -> int:
    """Run `trainer` with the labels of its arguments, or all in the field `annotations`; return its exit status.

    `more` names further arguments, which the trainer gets as they are.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--dataset_file", type=Path, required=True)
    parser.add_argument("--model_output_directory", type=Path, required=True)
    parser.add_argument("--labels", default="", help="labels to train on, with commas between; by default all")
    parser.add_argument("--model_type", choices=types, default=types[0])
    parser.add_argument("--seed", type=int, default=0)
    for name in more:
        parser.add_argument(f"--{name}")
    settings = parser.parse_args(arguments)
    passed = {name: getattr(settings, name) for name in more}
    with settings.dataset_file.open(encoding="utf-8") as lines:
        labels = [word.strip() for word in settings.labels.split(",") if word.strip()] or labels_of(lines, annotations)
    if not labels:
        sys.stdout.write("ERROR: no picture of the dataset has a label\n")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "labels.json"
        file.write_text(json.dumps(labels), encoding="utf-8")
        return trainer(
            [
                f"--dataset_file={settings.dataset_file}",
                f"--model_output_directory={settings.model_output_directory}",
                f"--labels_file={file}",
                f"--model_type={settings.model_type}",
                f"--seed={settings.seed}",
                *(f"--{name}={value}" for name, value in passed.items() if value is not None),
            ]
        )


def labels_of(lines: Iterable[str], annotations: str) -> list[str]:
    """Return the labels that `dataset.jsonl` has in a field, sorted."""
    entries = map(json.loads, lines)
    return sorted({each["annotation_label"] for entry in entries for each in entry.get(annotations) or ()})
