"""Measure trained models on held-out pictures: accuracy and processor time, for 2 to 200 pictures of each label.

Peers are scikit-learn's logistic regression on raw pixels, and a small convolutional network that is trained from
scratch with PyTorch (a perceptron where PyTorch is not installed). This needs the extra `ml` and scikit-learn, and for
the sets of objects Debian's package tuxpaint-stamps-default, installed or unpacked (then `--stamps` names the folder).

A figure is the mean over the seeds. Seconds contain reading and learning the training pictures, and predictions for the
held-out ones; "ours, cells" is the share of seeds for which the head scores cells of pictures, not averages. Training
pictures, held-out pictures, and the choice of objects depend on the seed only. All training pictures are used, and the
head is chosen among them, as the trainer does.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench import training_peers as peers
from bench import training_sets as sets
from bench.training_sets import Sample
from training.trainers import backbone as backbones
from training.trainers import head as heads
from training.trainers.choice import HeadCandidate, choose, fit
from training.trainers.examples import RARE
from training.trainers.features import Extractor, calm
from training.trainers.pooled import sample_of
from training.weights import BACKBONE

FEW: Final = 20  # pictures of each label up to which all seeds are measured
SEEDS_OF_MANY: Final = 2
ALL: Final = (2, 5, 10, 20, 50, 100, 200)
Take = Callable[[int, int, bool], Iterator[Sample]]  # seed, pictures of each label, whether they are held out


@dataclass(frozen=True, slots=True)
class Task:
    """A set of labelled pictures."""

    name: str
    each: tuple[int, ...]  # pictures of each label
    take: Take
    test: int = 20  # held-out pictures of each label
    multiple: bool = False  # a picture can have several labels


def drawn(seed: int, held_out: bool) -> random.Random:
    return random.Random(2 * seed + held_out)


def tasks(stamps: Path) -> list[Task]:
    def particular(background: sets.Background) -> Take:
        def take(seed: int, each: int, held_out: bool) -> Iterator[Sample]:
            pool = sets.particular(sets.stamps(stamps), 8, seed + 3)
            return sets.objects(drawn(seed, held_out), pool, each, background)

        return take

    def kinds(background: sets.Background) -> Take:
        def take(seed: int, each: int, held_out: bool) -> Iterator[Sample]:
            pool = sets.divided(sets.stamps(stamps), seed)[held_out]
            return sets.objects(drawn(seed, held_out), pool, each, background)

        return take

    def several(seed: int, each: int, held_out: bool) -> Iterator[Sample]:
        pool = sets.particular(sets.stamps(stamps), 5, seed + 3)
        count = each * 5 // 2  # a scene has two objects on average
        return sets.scenes(drawn(seed, held_out), pool, count, sets.photograph, size=224)

    def scenes(seed: int, each: int, held_out: bool) -> Iterator[Sample]:
        return sets.shape_scenes(drawn(seed, held_out), each * 3 // 2, size=160)

    return [
        Task("digits", (2, 5, 10, 20, 50, 100), lambda s, n, h: sets.digits(drawn(s, h), n, held_out=h), 60),
        Task("large digits", ALL, lambda s, n, h: sets.large_digits(drawn(s, h), n, held_out=h), 50),
        Task("faces or not", (2, 5, 10, 20, 50), lambda s, n, h: sets.faces(drawn(s, h), n, held_out=h), 40),
        Task("surfaces", ALL, lambda s, n, h: sets.surfaces(drawn(s, h), n, held_out=h), 50),
        Task("shapes", ALL, lambda s, n, h: sets.shapes(drawn(s, h), n), 50),
        Task("8 objects, plain", (2, 5, 10, 20, 50), particular(sets.plain)),
        Task("8 objects, photographs", ALL, particular(sets.photograph)),
        Task("7 kinds, other objects, plain", (5, 20, 100), kinds(sets.plain)),
        Task("7 kinds, other objects, photographs", (5, 20, 100), kinds(sets.photograph)),
        Task("5 objects, several in a picture", ALL, several, 40, multiple=True),
        Task("shapes, several in a picture", ALL, scenes, 40, multiple=True),
    ]


class Ours:
    """The backbone and head of the trainer, without its files."""

    def __init__(self) -> None:
        self.arrays: Any = importlib.import_module("numpy")
        self._runtime = importlib.import_module("onnxruntime")
        self._content = BACKBONE.read_bytes()
        self._folder = tempfile.TemporaryDirectory()
        self._count = 0

    def predict(
        self, training: Sequence[Sample], targets: Any, folds: Any, test: Sequence[Sample], *, exclusive: bool
    ) -> tuple[Any, HeadCandidate]:
        """Return the probabilities for other pictures, and the head that was chosen."""
        extractor = Extractor(self.arrays, self._runtime, backbones.read(self._content), "", None)
        files = self._saved(training)
        extractor.prepare(sample_of([(path, path) for path in files]))
        examples = self._examples(extractor, files, targets, exclusive=exclusive)
        choice = choose(self.arrays, examples, folds)
        classifier = fit(self.arrays, examples, choice.candidate)
        others = self._examples(extractor, self._saved(test), targets[:0], exclusive=exclusive)
        return classifier.probabilities(self.arrays, others), choice.candidate

    def _saved(self, samples: Sequence[Sample]) -> list[str]:
        paths = []
        for sample in samples:
            self._count += 1
            paths.append(f"{self._folder.name}/{self._count}.png")
            sample.image.save(paths[-1])
        return paths

    def _examples(self, extractor: Extractor, files: Sequence[str], targets: Any, *, exclusive: bool) -> heads.Examples:
        rows, cells = zip(*(extractor.of(path, path)[0] for path in files), strict=True)
        features = self.arrays.stack(rows).astype(float)
        return heads.Examples(features, targets, extractor.groups, exclusive, self.arrays.stack(cells))


def targets_of(arrays: Any, samples: Sequence[Sample], labels: Sequence[str]) -> Any:
    return arrays.array([[label in sample.labels for label in labels] for sample in samples], float)


def folds_of(samples: Sequence[Sample], *, exclusive: bool) -> list[int]:
    """Return the fold of each picture, divided as `training.trainers.examples.parts` does, without a test."""
    combinations = Counter(sample.labels for sample in samples)
    counts: Counter[tuple[str, ...]] = Counter()
    folds = []
    for sample in samples:
        key = sample.labels if exclusive or combinations[sample.labels] >= RARE else ()
        folds.append(counts[key] % heads.FOLDS)
        counts[key] += 1
    return folds


def accuracy(predicted: Any, truth: Any, *, exclusive: bool) -> float:
    """Return the share of pictures whose labels are all right."""
    if exclusive:
        return float((predicted.argmax(axis=1) == truth.argmax(axis=1)).mean())
    return float(((predicted > 0.5) == (truth > 0.5)).all(axis=1).mean())


def macro_f1(predicted: Any, truth: Any) -> float:
    """Return the mean over the labels of 2 x right / (named + present)."""
    named, present = predicted > 0.5, truth > 0.5
    sums = named.sum(axis=0) + present.sum(axis=0)
    return float((2 * (named & present).sum(axis=0) / sums.clip(1)).mean())


def mean_average_precision(arrays: Any, predicted: Any, truth: Any) -> float:
    """Return the mean over the labels of the average precision; that of an order by lot is the share of a label."""
    values = []
    for scores, present in zip(predicted.T, truth.T, strict=True):
        ordered = present[arrays.argsort(-scores, kind="stable")]
        precision = ordered.cumsum() / arrays.arange(1, len(ordered) + 1)
        values.append(float((precision * ordered).sum() / max(1.0, ordered.sum())))
    return statistics.mean(values)


def chance(truth: Any, *, exclusive: bool) -> float:
    rows = [tuple(row) for row in truth.tolist()]
    return max(rows.count(row) for row in set(rows)) / len(rows)


def measure(ours: Ours, task: Task, each: int, seed: int) -> dict[str, tuple[float, ...]]:
    """Return accuracy and processor seconds of each way, and for several labels F1 and mean average precision."""
    arrays, exclusive = ours.arrays, not task.multiple
    training, test = list(task.take(seed, each, False)), list(task.take(seed, task.test, True))
    labels = sorted({label for sample in training for label in sample.labels})
    targets, truth = (targets_of(arrays, samples, labels) for samples in (training, test))
    folds = folds_of(training, exclusive=exclusive)

    def row(predicted: Any, begin: float) -> tuple[float, ...]:
        seconds = time.process_time() - begin
        more = () if exclusive else (macro_f1(predicted, truth), mean_average_precision(arrays, predicted, truth))
        return accuracy(predicted, truth, exclusive=exclusive), seconds, *more

    rows: dict[str, tuple[float, ...]] = {"chance": (chance(truth, exclusive=exclusive), 0.0)}
    begin = time.process_time()
    predicted, candidate = ours.predict(training, targets, arrays.array(folds), test, exclusive=exclusive)
    rows["ours"] = row(predicted, begin)
    rows["ours, cells"] = (float(candidate.sharpness > 0), 0.0)
    for name, way in peers.WAYS.items():
        begin = time.process_time()
        predicted = way(training, targets, test, seed, exclusive=exclusive)
        rows[name] = row(predicted, begin)
    return rows


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench training", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seeds", type=int, default=5, help="less for many pictures")
    parser.add_argument("--stamps", type=Path, default=sets.STAMPS, help="folder of the pictures of objects")
    parser.add_argument("--only", default="", help="measure the sets whose name begins with this")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    settings = parser.parse_args(argv)
    missing = [name for name in ("numpy", "onnxruntime", "sklearn") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"training: skipped, because {', '.join(missing)} is not installed", file=sys.stderr)
        return 0
    calm()
    ours, written = Ours(), []
    for task in tasks(settings.stamps):
        if not task.name.startswith(settings.only):
            continue
        for each in task.each:
            try:
                seeds = settings.seeds if each <= FEW else min(settings.seeds, SEEDS_OF_MANY)
                runs = [measure(ours, task, each, seed) for seed in range(seeds)]
            except FileNotFoundError as error:
                print(f"{task.name}: left out: {error}", file=sys.stderr)
                break
            means = {
                name: [statistics.mean(values) for values in zip(*(run[name] for run in runs), strict=True)]
                for name in runs[0]
            }
            spread = {name: statistics.pstdev(run[name][0] for run in runs) for name in runs[0]}
            written.append({"set": task.name, "each": each, "seeds": seeds, **means, "deviations": spread})
            line = "  ".join(
                f"{name} {figure:.3f} ± {spread[name]:.3f} ({seconds:.1f} s)"
                + "".join(f" {label} {value:.3f}" for label, value in zip(("F1", "mAP"), more, strict=False))
                for name, (figure, seconds, *more) in means.items()
            )
            print(f"{task.name:36} {each:4}  {line}", flush=True)
    if settings.json:
        settings.json.write_text(json.dumps(written, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
