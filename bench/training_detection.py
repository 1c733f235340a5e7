"""Measure trained detectors on held-out scenes: mAP50, mAP75 and processor time, for 60 to 300 pictures.

Needs what `python -m bench training` needs, and runs the trainer as a job runs it. `--trainer` and `--pictures` measure
fine-tuning, with an interpreter that has PyTorch.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench import training_sets as sets
from bench.training_sets import Sample

ROOT = Path(__file__).parent.parent
Take = Callable[[random.Random, int, bool], Iterator[Sample]]
EDGES = ("x_min", "y_min", "x_max", "y_max")


def tasks(stamps: Path) -> dict[str, tuple[tuple[int, ...], Take]]:
    def particular(chance: random.Random, count: int, held_out: bool) -> Iterator[Sample]:
        return sets.scenes(chance, sets.particular(sets.stamps(stamps), 3, 3), count, sets.photograph, size=192)

    def kinds(chance: random.Random, count: int, held_out: bool) -> Iterator[Sample]:
        pool = sets.divided(sets.stamps(stamps), 0)[held_out]
        return sets.scenes(chance, pool, count, sets.photograph, size=256)

    return {
        "shapes": ((60, 300), lambda chance, count, _: sets.shape_scenes(chance, count, size=128)),
        "3 objects, photographs": ((60, 100), particular),
        "7 kinds, other objects, photographs": ((120,), kinds),
    }


def described(folder: Path, samples: Sequence[Sample], first: int) -> list[str]:
    lines = []
    for number, sample in enumerate(samples, first):
        path = folder / f"{number}.png"
        sample.image.save(path)
        boxes = [
            {"annotation_label": label, **{f"{edge}_normalized": at for edge, at in zip(EDGES, edges, strict=True)}}
            for label, *edges in sample.boxes
        ]
        entry = {"image_path": str(path), "binary_data_id": f"p{number}", "bounding_box_annotations": boxes}
        lines.append(json.dumps(entry))
    return lines


EVALUATE = """
import json, sys
from pathlib import Path
from training.trainers import backbone, detection
from training.trainers.detectors.boxes import pictures_of
from training.weights import BACKBONE
class Settings: labels_file, seed = Path(sys.argv[1]), 0
training = detection._Training(Settings)
pictures = pictures_of(Path(sys.argv[2]).read_text().splitlines(), json.loads(Settings.labels_file.read_text()))
figures = training._figures(Path(sys.argv[3]).read_bytes(), backbone.read(BACKBONE.read_bytes()), pictures)
print(json.dumps([figures["mAP50"], figures["mAP75"]]))
"""


def measure(take: Take, count: int, seed: int, trainer: str) -> tuple[float, float, float]:
    """Return mAP50 and mAP75 on 60 other scenes, and the processor seconds of the training."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        training = list(take(random.Random(2 * seed), count, False))
        held_out = list(take(random.Random(2 * seed + 1), 60, True))
        labels = sorted({label for sample in training for label in sample.labels})
        (folder / "labels.json").write_text(json.dumps(labels))
        (folder / "dataset.jsonl").write_text("\n".join(described(folder, training, 0)))
        (folder / "test.jsonl").write_text("\n".join(described(folder, held_out, count)))
        names = {"dataset_file": "dataset.jsonl", "labels_file": "labels.json", "model_output_directory": "output"}
        options = [f"--{option}={folder / file}" for option, file in names.items()]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        before = os.times()
        command = [sys.executable, "-m", trainer, *options, f"--seed={seed}"]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        seconds = after.children_user + after.children_system - before.children_user - before.children_system
        files = [str(folder / file) for file in ("labels.json", "test.jsonl", "output/model.onnx")]
        command = [sys.executable, "-c", EVALUATE, *files]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        fifty, seventy_five = json.loads(done.stdout.splitlines()[-1])
        return fifty, seventy_five, seconds


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench training_detection", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--stamps", type=Path, default=sets.STAMPS, help="folder of the pictures of objects")
    parser.add_argument("--trainer", default="training.trainers.detection", help="module of the trainer")
    parser.add_argument("--only", default="", help="measure the sets whose name begins with this")
    parser.add_argument("--pictures", type=int, nargs="+", help="numbers of pictures, in place of those of the sets")
    settings = parser.parse_args(argv)
    for name, (counts, take) in tasks(settings.stamps).items():
        if not name.startswith(settings.only):
            continue
        for count in settings.pictures or counts:
            begin = time.monotonic()
            try:
                rows = [measure(take, count, seed, settings.trainer) for seed in range(settings.seeds)]
            except (FileNotFoundError, ModuleNotFoundError) as error:
                print(f"{name}: left out: {error}", file=sys.stderr)
                break
            means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
            elapsed = time.monotonic() - begin
            line = f"mAP50 {means[0]:.3f}  mAP75 {means[1]:.3f}  {means[2]:.1f} s of processor time ({elapsed:.0f} s)"
            print(f"{name:36} {count:4}  {line}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
