"""Trainer of classifiers: a linear head on a frozen, pretrained backbone. Run as `python -m`, with ONNX Runtime.

It writes `model.onnx` (the whole model, with the preparation of pictures inside), `labels.txt` and `report.json`.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from training.jobs.events import Metric, Progress, report
from training.trainers import backbone as backbones
from training.trainers import head as heads
from training.trainers.backbone import Backbone, Head
from training.trainers.choice import HeadCandidate, candidates_of, choose, fit
from training.trainers.examples import Example, examples_of, parts
from training.trainers.features import Extractor, calm, picture, session_of
from training.trainers.pooled import sample_of
from training.trainers.program import distinct, options, say
from training.trainers.report import Accuracies, figures, remarks
from training.weights import add_notices

SINGLE: Final = "single_label_classification"
MULTI: Final = "multi_label_classification"
REPORTS: Final = 50  # reports of progress
SAVED: Final = 200  # pictures between two checkpoints, at least
SAVES: Final = 20  # checkpoints of a run, each of which contains all pictures before
MIN_EXAMPLES: Final = 4  # readable pictures of each label
EQUAL: Final = 5e-3
"""Largest difference of probabilities between the written model and the head, whose cells are float16."""
STOPPED: Final = 143  # exit status after SIGTERM


def main(arguments: Sequence[str] | None = None) -> int:
    """Train; return the exit status."""
    settings = options(__doc__, (SINGLE, MULTI)).parse_args(arguments)
    try:
        _Training(settings).run()
    except ValueError as error:
        say(f"ERROR: {error}")
        return 1
    return 0


class _Training:
    def __init__(self, settings: argparse.Namespace) -> None:
        self._settings = settings
        calm()
        self._arrays: Any = importlib.import_module("numpy")
        self._runtime: Any = importlib.import_module("onnxruntime")
        self._exclusive = settings.model_type == SINGLE
        self._labels: list[str] = json.loads(settings.labels_file.read_text())
        self._begin = time.process_time()

    def run(self) -> None:
        content = self._settings.backbone.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        try:
            backbone = backbones.read(content)
            folder = os.environ.get("TRAINING_CHECKPOINTS")
            checkpoint = Path(folder) if folder else None
            extractor = Extractor(self._arrays, self._runtime, backbone, digest, checkpoint)
        except ValueError as error:
            raise ValueError(f"the backbone {self._settings.backbone.name} cannot be used: {error}") from error
        with self._settings.dataset_file.open(encoding="utf-8") as lines:
            listed = examples_of(lines, self._labels, exclusive=self._exclusive)
        examples, data, problems = self._features(extractor, listed)
        check_counts(examples, self._labels)
        arrays = self._arrays
        part = arrays.array(parts(examples, self._settings.seed, heads.FOLDS))
        training = part >= 0
        choice = choose(arrays, data.part(training), part[training], self._compared(data, len(listed)))
        classifier = fit(arrays, data.part(training), choice.candidate)
        say(f"chosen: {choice.candidate}")
        predicted = classifier.probabilities(arrays, data.part(~training))
        tests = [example for example, own in zip(examples, part, strict=True) if own < 0]
        test_figures = figures(tests, predicted.tolist(), self._labels, exclusive=self._exclusive)
        others = [example for example, own in zip(examples, part, strict=True) if own >= 0]
        crossed_figures = figures(others, choice.held_out.tolist(), self._labels, exclusive=self._exclusive)
        accuracies = Accuracies(
            crossed_figures["accuracy"],
            crossed_figures["accuracy_of_the_most_frequent_answer"],
            test_figures["accuracy"],
            len(tests),
        )
        say(report(Metric("cross_validated_accuracy", accuracies.cross_validated)))
        if accuracies.test is not None:
            say(report(Metric("test_accuracy", accuracies.test)))
        for line in remarks(accuracies):
            say(f"WARNING: {line}")
        weights, biases = (values.astype(arrays.float32).tobytes() for values in classifier.layer(extractor.basis))
        size, sharpness = sum(extractor.groups), choice.candidate.sharpness
        layer = Head(weights, biases, size, self._labels, self._exclusive, sharpness)
        settings = self._settings
        model = write_model(settings.model_output_directory, backbone, layer, settings.backbone)
        count, sure = len(self._labels), predicted if tests else None
        compare(arrays, self._runtime, model, backbone, tests or examples, sure, count)
        content = {
            "backbone": {"file": settings.backbone.name, "sha256": digest},
            "head": {
                "chosen": str(choice.candidate),
                "losses": {str(candidate): value for candidate, value in choice.losses.items()},
            },
            "remarks": remarks(accuracies),
            "cross_validation": crossed_figures,
            "test": test_figures,
            "processor_seconds": round(time.process_time() - self._begin, 2),
        }
        write_report(settings, self._labels, examples, part, problems, content)
        say("the model is complete")

    def _compared(self, data: heads.Examples, pictures: int) -> Callable[[HeadCandidate, float], None]:
        """Return what reports the loss of each candidate, the smallest so far, and the second half of the progress."""
        candidates, losses = candidates_of(data), list[float]()

        def compared(candidate: HeadCandidate, loss: float) -> None:
            step = len(losses)
            losses.append(loss)
            say(f"{candidate}: loss {loss:.4f} on held-out folds")
            say(report(Metric("validation_loss", min(losses), step)))
            say(report(Progress(pictures + pictures * (step + 1) // len(candidates), 2 * pictures)))

        return compared

    def _features(
        self, extractor: Extractor, listed: Sequence[Example]
    ) -> tuple[list[Example], heads.Examples, dict[str, list[str]]]:
        """Return readable, different examples and their features, and the ids of the others."""

        def stop(number: int, frame: FrameType | None) -> NoReturn:
            extractor.save()
            raise SystemExit(STOPPED)

        signal.signal(signal.SIGTERM, stop)
        if extractor.resumed:
            say(f"continuing with the features of {extractor.resumed} pictures")
        say(report(Progress(0, 2 * len(listed))))
        own = zip(listed, parts(listed, self._settings.seed, heads.FOLDS), strict=True)
        extractor.prepare(sample_of([(example.id, example.path) for example, part in own if part >= 0]))
        examples, rows, cells = [], [], []
        problems: dict[str, list[str]] = {"unreadable": [], "duplicates": []}
        interval, saved = max(1, len(listed) // REPORTS), max(SAVED, len(listed) // SAVES)
        for example, (row, reduced) in distinct(listed, lambda each: extractor.of(each.id, each.path), problems):
            examples.append(example)
            rows.append(row)
            cells.append(reduced)
            done = len(examples) + sum(map(len, problems.values()))
            if done % interval == 0:
                say(report(Progress(done, 2 * len(listed))))
            if done % saved == 0:
                extractor.save()
        extractor.save()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        arrays = self._arrays
        features = arrays.stack(rows).astype(arrays.float64) if rows else arrays.zeros((0, sum(extractor.groups)))
        described = arrays.stack(cells) if rows and extractor.basis is not None else None
        targets = targets_of(arrays, examples, self._labels)
        return examples, heads.Examples(features, targets, extractor.groups, self._exclusive, described), problems


def check_counts(examples: Sequence[Example], labels: Sequence[str]) -> None:
    """Raise ValueError if a label has too few pictures."""
    for label in labels:
        count = sum(label in example.labels for example in examples)
        if count < MIN_EXAMPLES:
            raise ValueError(
                f"the label {label!r} has only {count} different readable pictures, {MIN_EXAMPLES} are needed"
            )


def targets_of(arrays: Any, examples: Sequence[Example], labels: Sequence[str]) -> Any:
    """Return rows of 0 and 1 [count, labels]."""
    return arrays.array([[label in example.labels for label in labels] for example in examples], float)


def write_model(folder: Path, backbone: Backbone, head: Head, weights: Path) -> Path:
    """Write the model, its labels, and the notices next to the file `weights`; return the path of the model."""
    folder.mkdir(parents=True, exist_ok=True)
    model = folder / "model.onnx"
    model.write_bytes(backbones.assembled(backbone, head, {"names": repr(dict(enumerate(head.labels)))}))
    (folder / "labels.txt").write_text("".join(f"{label}\n" for label in head.labels), encoding="utf-8")
    add_notices(weights, folder)
    return model


def compare(
    arrays: Any, runtime: Any, model: Path, backbone: Backbone, examples: Sequence[Example], predicted: Any, count: int
) -> None:
    """Run the written file on some pictures; ValueError unless it gives `count` probabilities, those of `predicted`."""
    session = session_of(runtime, model.read_bytes())
    for index, example in enumerate(examples[:8]):
        tensor, _ = picture(arrays, example.path, backbone)
        row = session.run(["probability"], {"image": tensor})[0][0]
        if row.shape != (count,) or not arrays.isfinite(row).all():
            raise ValueError(f"the written model does not work: {row}")
        if predicted is not None and abs(row - predicted[index]).max() > EQUAL:
            raise ValueError(f"the written model differs from the trained one by {abs(row - predicted[index]).max()}")


def write_report(
    settings: argparse.Namespace,
    labels: Sequence[str],
    examples: Sequence[Example],
    part: Any,
    problems: Mapping[str, Sequence[str]],
    more: Mapping[str, Any],
) -> None:
    """Write `report.json`; `part` is negative for the pictures of the test."""
    content = {
        "format": 1,
        "model_type": settings.model_type,
        "labels": labels,
        "seed": settings.seed,
        "pictures": {
            "used": len(examples),
            "training": [example.id for example, own in zip(examples, part, strict=True) if own >= 0],
            "test": [example.id for example, own in zip(examples, part, strict=True) if own < 0],
            **problems,
        },
        **more,
    }
    path: Path = settings.model_output_directory / "report.json"
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
