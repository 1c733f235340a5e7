"""Compare fine-tuning with PyTorch and the trainer of machine-cloud: accuracy on held-out pictures, processor seconds.

Both run as they are, with the same dataset; the model that each writes is judged with pictures that neither has seen.
This needs PyTorch, scikit-learn and the extra `ml`, and for the sets of objects `--stamps`, as `bench training`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import training_sets as sets
from bench.training import Task, accuracy, targets_of, tasks
from bench.training_sets import Sample

WAYS = {"frozen": "training.trainers.classification", "fine-tuned": "training.trainers.finetune.training"}
TYPES = ("single_label_classification", "multi_label_classification")


def measure(task: Task, each: int, seed: int) -> dict[str, tuple[float, float, float]]:
    """Return accuracy, processor seconds and seconds of each way."""
    training, test = list(task.take(seed, each, False)), list(task.take(seed, task.test, True))
    labels = sorted({label for sample in training for label in sample.labels})
    rows = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "labels.json").write_text(json.dumps(labels))
        with (folder / "dataset.jsonl").open("w") as lines:
            for number, sample in enumerate(training):
                path = folder / f"{number}.png"
                sample.image.save(path)
                tags = [{"annotation_label": label} for label in sample.labels]
                lines.write(json.dumps({"image_path": str(path), "classification_annotations": tags}) + "\n")
        for way, module in WAYS.items():
            output = folder / way
            words = [
                f"--dataset_file={folder / 'dataset.jsonl'}",
                f"--model_output_directory={output}",
                f"--labels_file={folder / 'labels.json'}",
                f"--model_type={TYPES[task.multiple]}",
                f"--seed={seed}",
            ]
            before, begin = os.times(), time.monotonic()
            subprocess.run([sys.executable, "-m", module, *words], check=True, stdout=subprocess.DEVNULL)
            took, after = time.monotonic() - begin, os.times()
            used = after.children_user - before.children_user + after.children_system - before.children_system
            rows[way] = judged(output / "model.onnx", test, labels, exclusive=not task.multiple), used, took
    return rows


def judged(model: Path, test: Sequence[Sample], labels: Sequence[str], *, exclusive: bool) -> float:
    import numpy
    import onnxruntime

    session = onnxruntime.InferenceSession(model.read_bytes())
    size = session.get_inputs()[0].shape[2], session.get_inputs()[0].shape[1]
    rows = [
        session.run(["probability"], {"image": numpy.asarray(each.image.resize(size, 2), numpy.float32)[None]})[0][0]
        for each in test
    ]
    return accuracy(numpy.stack(rows), targets_of(numpy, test, labels), exclusive=exclusive)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench training_finetune", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--each", type=int, nargs="*", default=[10, 50, 200], help="pictures of each label")
    parser.add_argument("--stamps", type=Path, default=sets.STAMPS, help="folder of the pictures of objects")
    parser.add_argument("--only", default="", help="measure the sets whose name begins with this")
    settings = parser.parse_args(argv)
    missing = [name for name in ("torch", "onnxruntime", "sklearn") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"training_finetune: skipped, because {', '.join(missing)} is not installed", file=sys.stderr)
        return 0
    for task in tasks(settings.stamps):
        if not task.name.startswith(settings.only):
            continue
        for each in settings.each:
            runs = [measure(task, each, seed) for seed in range(settings.seeds)]
            cells = []
            for way in WAYS:
                right, used, took = (statistics.mean(run[way][part] for run in runs) for part in range(3))
                cells.append(f"{way} {right:.3f} ({used:.1f} s processor, {took:.1f} s)")
            print(f"{task.name:36} {each:4}  {'  '.join(cells)}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
