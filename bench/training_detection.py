"""Measure trained detectors on held-out scenes: mAP50, mAP75 and processor time, for 20 to 200 pictures.

The trainer runs as a job runs it. Peers are a small convolutional network from scratch (PyTorch) and logistic
regression on the pixels of windows (scikit-learn). A figure is the mean over the seeds, with the deviation. Pictures,
held-out pictures, and the choice of objects depend on the seed only. The trainer keeps a fifth of the pictures as its
test and a fifth of the rest for validation; the peers use all of them. It needs what `bench training` needs.

`--trainer training.trainers.finetune.detection` measures fine-tuning, with an interpreter that has PyTorch.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from PIL import Image

from bench import training_detection_peers as peers
from bench import training_sets as sets
from bench.training_detection_peers import Detector
from bench.training_sets import Sample
from training.trainers import backbone as backbones
from training.trainers.detectors.boxes import Box, figures
from training.trainers.features import calm, session_of, sized
from training.weights import BACKBONE

ROOT: Final = Path(__file__).parent.parent
EDGES: Final = ("x_min", "y_min", "x_max", "y_max")
TEST: Final = 60  # held-out pictures
FEW: Final = 50  # pictures up to which all seeds are measured
SEEDS_OF_MANY: Final = 2
OURS: Final = "trainer"
NEEDED: Final = {OURS: "", **peers.NEEDED}  # the package that a way needs
Take = Callable[[int, int, bool], Iterator[Sample]]  # seed, pictures, whether they are held out
Row = tuple[float, float, float, float]
COLUMNS: Final = ("mAP50", "mAP75", "seconds", "seconds_of_a_prediction")


class Refused(Exception):
    """The trainer does not accept the pictures."""


def tasks(stamps: Path) -> dict[str, tuple[tuple[int, ...], Take]]:
    def drawn(seed: int, held_out: bool) -> random.Random:
        return random.Random(2 * seed + held_out)

    def shapes(seed: int, count: int, held_out: bool) -> Iterator[Sample]:
        return sets.shape_scenes(drawn(seed, held_out), count, size=128)

    def particular(seed: int, count: int, held_out: bool) -> Iterator[Sample]:
        pool = sets.particular(sets.stamps(stamps), 3, seed + 3)
        return sets.scenes(drawn(seed, held_out), pool, count, sets.photograph, size=192)

    def kinds(seed: int, count: int, held_out: bool) -> Iterator[Sample]:
        pool = sets.divided(sets.stamps(stamps), seed)[held_out]
        return sets.scenes(drawn(seed, held_out), pool, count, sets.photograph, size=256)

    return {
        "shapes": ((20, 50, 100, 200), shapes),
        "3 objects, photographs": ((20, 50, 100, 200), particular),
        "7 kinds, other objects, photographs": ((50, 100, 200), kinds),
    }


def written(folder: Path, samples: Sequence[Sample], labels: Sequence[str]) -> None:
    """Write pictures, `dataset.jsonl` and `labels.json` for the trainer."""
    lines = []
    for number, sample in enumerate(samples):
        path = folder / f"{number}.png"
        sample.image.save(path)
        boxes = [
            {"annotation_label": label, **{f"{edge}_normalized": at for edge, at in zip(EDGES, edges, strict=True)}}
            for label, *edges in sample.boxes
        ]
        entry = {"image_path": str(path), "binary_data_id": f"p{number}", "bounding_box_annotations": boxes}
        lines.append(json.dumps(entry))
    (folder / "dataset.jsonl").write_text("\n".join(lines))
    (folder / "labels.json").write_text(json.dumps(labels))


def trained(trainer: str, training: Sequence[Sample], labels: Sequence[str], seed: int) -> tuple[bytes, float]:
    """Return the trainer's model and its processor seconds; Refused."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written(folder, training, labels)
        names = {"dataset_file": "dataset.jsonl", "labels_file": "labels.json", "model_output_directory": "output"}
        options = [f"--{option}={folder / file}" for option, file in names.items()]
        command = [sys.executable, "-m", trainer, *options, f"--seed={seed}"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        before = os.times()
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
        after = os.times()
        if done.returncode:
            raise Refused(done.stdout.strip().rpartition("\n")[2])
        used = after.children_user + after.children_system - before.children_user - before.children_system
        return (folder / "output" / "model.onnx").read_bytes(), used


def detector(model: bytes, labels: Sequence[str]) -> Detector:
    """Return the model as a machine runs it."""
    arrays, backbone = importlib.import_module("numpy"), backbones.read(BACKBONE.read_bytes())
    session = session_of(importlib.import_module("onnxruntime"), model)

    def detect(image: Image.Image) -> list[Box]:
        output: Any = session.run(["location", "category", "score"], {"image": sized(arrays, image, backbone)})
        rows = zip(*(values[0].tolist() for values in output), strict=True)
        return [peers.box_of(labels[int(label)], edges, score) for edges, label, score in rows]

    return detect


def measure(take: Take, count: int, seed: int, trainer: str, ways: Sequence[str]) -> dict[str, Row]:
    """Return a row of `COLUMNS` for each way; Refused."""
    training, test = list(take(seed, count, False)), list(take(seed, TEST, True))
    labels = sorted({label for sample in training for label in sample.labels})
    truth = peers.boxed(test)

    def row(detect: Detector, seconds: float) -> Row:
        begin = time.process_time()
        detections = [detect(sample.image) for sample in test]
        prediction = (time.process_time() - begin) / len(test)
        result = figures(truth, detections, labels)
        return result["mAP50"], result["mAP75"], seconds, prediction

    rows = {}
    for name in ways:
        if name == OURS:
            model, used = trained(trainer, training, labels, seed)
            rows[name] = row(detector(model, labels), used)
            continue
        begin = time.process_time()
        detect = peers.WAYS[name](training, labels, seed)
        rows[name] = row(detect, time.process_time() - begin)
    return rows


def measured(take: Take, count: int, seeds: Sequence[int], trainer: str, ways: Sequence[str]) -> dict[int, Any]:
    """Return the rows of each seed, without those that the trainer refuses."""
    runs = {}
    for seed in seeds:
        try:
            runs[seed] = measure(take, count, seed, trainer, ways)
        except Refused as error:
            print(f"{count} pictures, seed {seed}: left out: the trainer says: {error}", file=sys.stderr)
    return runs


def summary(runs: dict[int, dict[str, Row]]) -> dict[str, dict[str, tuple[float, float]]]:
    """Return mean and deviation of each column of each way."""
    result: dict[str, dict[str, tuple[float, float]]] = {}
    for name in next(iter(runs.values())):
        columns = zip(*(rows[name] for rows in runs.values()), strict=True)
        pairs = [(statistics.mean(values), statistics.pstdev(values)) for values in columns]
        result[name] = dict(zip(COLUMNS, pairs, strict=True))
    return result


def available(names: Sequence[str]) -> list[str]:
    """Return those of the ways whose package is installed; print which are not."""
    result = []
    for name in names:
        if (package := NEEDED[name]) and importlib.util.find_spec(package) is None:
            print(f"{name}: left out, because {package} is not installed", file=sys.stderr)
        else:
            result.append(name)
    return result


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench training_detection", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seeds", type=int, default=3, help=f"at most {SEEDS_OF_MANY} for more than {FEW} pictures")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--stamps", type=Path, default=sets.STAMPS, help="folder of the pictures of objects")
    parser.add_argument("--trainer", default="training.trainers.detection", help="module of the trainer")
    parser.add_argument("--ways", nargs="+", choices=list(NEEDED), default=list(NEEDED), help="what is measured")
    parser.add_argument("--only", default="", help="measure the sets whose name begins with this")
    parser.add_argument("--pictures", type=int, nargs="+", help="numbers of pictures, in place of those of the sets")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    settings = parser.parse_args(argv)
    missing = [name for name in ("numpy", "onnxruntime") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"training_detection: skipped, because {', '.join(missing)} is not installed", file=sys.stderr)
        return 0
    calm()
    ways, entries = available(settings.ways), []
    for name, (counts, take) in tasks(settings.stamps).items():
        if not name.startswith(settings.only):
            continue
        for count in settings.pictures or counts:
            seeds = settings.seeds if count <= FEW else min(settings.seeds, SEEDS_OF_MANY)
            chosen = range(settings.first_seed, settings.first_seed + seeds)
            try:
                runs = measured(take, count, chosen, settings.trainer, ways)
            except (FileNotFoundError, ModuleNotFoundError) as error:
                print(f"{name}: left out: {error}", file=sys.stderr)
                break
            if not runs:
                continue
            result = summary(runs)
            entries.append({"set": name, "pictures": count, "seeds": list(runs), "ways": result})
            if settings.json:
                settings.json.write_text(json.dumps(entries, indent=1) + "\n")
            for way, columns in result.items():
                fifty, seventy_five, seconds, prediction = (columns[column] for column in COLUMNS)
                print(
                    f"{name:36} {count:4}  {len(runs)} seeds  {way:20}"
                    f" mAP50 {fifty[0]:.3f} ± {fifty[1]:.3f}  mAP75 {seventy_five[0]:.3f} ± {seventy_five[1]:.3f}"
                    f"  {seconds[0]:.1f} s of processor time, {1000 * prediction[0]:.1f} ms for a picture",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
