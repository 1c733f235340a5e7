"""Trainer of detectors: a small head on maps of a frozen, pretrained backbone. Run as `python -m`, with ONNX Runtime.

It writes `model.onnx` (the whole model, from the picture to the boxes), `labels.txt` and `report.json`.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

from training.jobs.events import Metric, Progress, report
from training.trainers import backbone as backbones
from training.trainers.detectors import fitting, graph, targets
from training.trainers.detectors.boxes import Box, Boxed, figures, pictures_of
from training.trainers.detectors.network import Adam, Weights, initial
from training.trainers.examples import Example, parts
from training.trainers.features import calm, opened, session_of, sized
from training.trainers.program import distinct, options, say
from training.weights import add_notices

TYPES: Final = ("object_detection",)
FOLDS: Final = 5  # of the training pictures; the first one is for validation
COPIES: Final = 6  # of each training picture, the first unchanged
ENOUGH_COPIES: Final = 1000  # of all; fewer pictures get more copies, and the fit sees each at least twelve times
MOST_COPIES: Final = 3000  # of all; more pictures get fewer copies
MIN_PICTURES: Final = 4  # readable pictures of each label
WEAK: Final = 0.5  # mAP50 below which the report says that the backbone is weak
FEW: Final = 20  # pictures in a test
PREPARATION: Final = 20  # percent of the progress of the head
CHANNELS: Final = 16  # of a map that are standardized at a time
STOPPED: Final = 143  # exit status after SIGTERM
Scaling = Sequence[tuple[Any, Any]]  # mean and deviation of the channels of each map


@dataclass(frozen=True, slots=True)
class FineTuningStart:
    """What a trainer gets that changes the fitted detector further."""

    backbone: backbones.Backbone
    digest: str  # of the backbone's file
    labels: Sequence[str]
    training: Sequence[Boxed]
    validation: Sequence[Boxed]
    fitted: Callable[[], tuple[Weights, Scaling]]  # fits the head, which takes time; InterruptedError
    written: Callable[[backbones.Backbone, Weights], bytes]  # returns the model
    judged: Callable[[bytes, Sequence[Boxed]], dict[str, Any]]  # figures of such a model
    stopping: Callable[[], bool]  # whether to raise InterruptedError soon


Improve = Callable[[FineTuningStart], tuple[backbones.Backbone, Weights, dict[str, Any]]]
"""Returns a backbone, the weights for its maps as it gives them, and further fields of the report."""


def unchanged(start: FineTuningStart) -> tuple[backbones.Backbone, Weights, dict[str, Any]]:
    """Return the fitted detector as it is."""
    return start.backbone, scaled(*start.fitted()), {}


def main(arguments: Sequence[str] | None = None) -> int:
    """Train; return the exit status."""
    settings = options(__doc__, TYPES).parse_args(arguments)
    try:
        return _Training(settings).run()
    except ValueError as error:
        say(f"ERROR: {error}")
        return 1


def train(settings: argparse.Namespace, improve: Improve, share: int) -> int:
    """Train with the settings of `main`; return the exit status. Fitting the head is one part in `share` of the work.

    ValueError says what is wrong with the pictures or the backbone.
    """
    return _Training(settings, improve, share).run()


def copies_of(pictures: int) -> int:
    """Return how many copies of each training picture the head is fitted to, with the unchanged one."""
    return max(1, min(max(COPIES, ENOUGH_COPIES // pictures), MOST_COPIES // pictures))


def importance_of(arrays: Any, training: Sequence[Boxed], labels: Sequence[str]) -> Any:
    """Return how much each label counts: rare ones more."""
    counts = Counter(box.label for picture in training for box in picture.boxes)
    rarity = arrays.array([counts[label] ** -0.5 for label in labels], "float32")
    return rarity / rarity.mean()


def scaled(weights: Weights, scaling: Scaling) -> Weights:
    """Return the weights for maps as the backbone gives them."""
    result = dict(weights)
    for number, (center, spread) in enumerate(scaling):
        kernel = weights[f"map{number}"] / spread[:, None]
        result[f"map{number}"] = kernel
        result["bias"] = result["bias"] - center @ kernel
    return result


def remarks(test: dict[str, Any]) -> list[str]:
    """Return what the figures mean for using the model, in sentences for people; none if all is well."""
    lines = []
    if test["mAP50"] is not None and test["mAP50"] < WEAK:
        lines.append(
            f"The model finds the objects badly: mAP50 is {test['mAP50']:.2f} in the test. The backbone is weak for"
            " them. It sees particular objects better than broad kinds, and large ones better than small ones. More"
            " pictures help, or pictures in which the objects are larger."
        )
    missed = [name for name, each in test["labels"].items() if each["boxes"] and not each["AP50"]]
    if missed:
        lines.append(f"These labels were never found in the test: {', '.join(missed)}.")
    if test["pictures"] < FEW:
        lines.append(f"The test has only {test['pictures']} pictures, so its figures say little.")
    return lines


def standardize(arrays: Any, values: Any) -> tuple[Any, Any]:
    """Standardize each channel of maps, in place; return means and deviations. A few channels at a time save memory."""
    scaling = []
    for first in range(0, values.shape[-1], CHANNELS):
        part = values[..., first : first + CHANNELS]
        numbers = part.astype(arrays.float32).reshape(-1, part.shape[-1])
        center, spread = numbers.mean(axis=0), numbers.std(axis=0) + 1e-3
        part[...] = (part - center) / spread
        scaling.append((center, spread))
    centers, spreads = zip(*scaling, strict=True)
    return arrays.concatenate(centers), arrays.concatenate(spreads)


class _Training:
    def __init__(self, settings: argparse.Namespace, improve: Improve = unchanged, share: int = 1) -> None:
        self._settings, self._improve, self._share = settings, improve, share
        calm()
        self._arrays: Any = importlib.import_module("numpy")
        self._runtime: Any = importlib.import_module("onnxruntime")
        self._labels: list[str] = json.loads(settings.labels_file.read_text())
        self._begin = time.process_time()
        self._stopping = False

    def run(self) -> int:
        """Train; return the exit status."""
        signal.signal(signal.SIGTERM, self._stop)
        content = self._settings.backbone.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        try:
            backbone = backbones.read(content)
            cells = graph.maps_of(backbone)[0][1]
            session = session_of(self._runtime, graph.extractor(backbone))
        except ValueError as error:
            raise ValueError(f"the backbone {self._settings.backbone.name} cannot be used: {error}") from error
        with self._settings.dataset_file.open(encoding="utf-8") as lines:
            pictures, problems = self._readable(pictures_of(lines, self._labels))
        part = parts([Example(picture.id, picture.path, ()) for picture in pictures], self._settings.seed, FOLDS)
        training = [picture for picture, own in zip(pictures, part, strict=True) if own > 0]
        validation = [picture for picture, own in zip(pictures, part, strict=True) if own == 0]
        test = [picture for picture, own in zip(pictures, part, strict=True) if own < 0]
        self._check(training)
        say(f"{len(training)} pictures for training, {len(validation)} for validation, {len(test)} for the test")

        def fitted() -> tuple[Weights, Scaling]:
            data, scaling = self._data(session, backbone, training, cells)
            return self._fitted(data, scaling, backbone, validation, digest), scaling

        def judged(model: bytes, chosen: Sequence[Boxed]) -> dict[str, Any]:
            return self._figures(model, backbone, chosen)

        start = FineTuningStart(
            backbone, digest, self._labels, training, validation, fitted, self._written, judged, lambda: self._stopping
        )
        try:
            changed, weights, more = self._improve(start)
        except InterruptedError:
            return STOPPED
        model = self._written(changed, weights)
        test_figures = self._figures(model, backbone, test)
        for name in ("mAP50", "mAP75"):
            if test_figures[name] is not None:
                say(report(Metric(f"test_{name}", test_figures[name])))
        for line in remarks(test_figures):
            say(f"WARNING: {line}")
        folder: Path = self._settings.model_output_directory
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(model)
        (folder / "labels.txt").write_text("".join(f"{label}\n" for label in self._labels), encoding="utf-8")
        add_notices(self._settings.backbone, folder)
        divided = {"training": training, "validation": validation, "test": test}
        about = {
            "format": 1,
            "model_type": self._settings.model_type,
            "labels": self._labels,
            "seed": self._settings.seed,
            "backbone": {"file": self._settings.backbone.name, "sha256": digest},
            "pictures": {
                "used": len(pictures),
                **{name: [picture.id for picture in members] for name, members in divided.items()},
                **problems,
            },
            **more,
            "remarks": remarks(test_figures),
            "test": test_figures,
            "processor_seconds": round(time.process_time() - self._begin, 2),
        }
        (folder / "report.json").write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        say("the model is complete")
        return 0

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True

    # ---- data

    def _readable(self, listed: Sequence[Boxed]) -> tuple[list[Boxed], dict[str, list[str]]]:
        """Return readable, different pictures, and the ids of the others."""
        pictures = []
        problems: dict[str, list[str]] = {"unreadable": [], "duplicates": []}
        for picture, whole in distinct(listed, lambda each: opened(each.path), problems):
            pictures.append(picture)
            whole.close()
        return pictures, problems

    def _check(self, training: Sequence[Boxed]) -> None:
        counts = Counter(label for picture in training for label in {box.label for box in picture.boxes})
        for label in self._labels:
            if counts[label] < MIN_PICTURES:
                raise ValueError(
                    f"only {counts[label]} different readable pictures with {label!r} are left for training,"
                    f" {MIN_PICTURES} are needed"
                )

    def _data(
        self, session: Any, backbone: backbones.Backbone, training: Sequence[Boxed], cells: int
    ) -> tuple[fitting.Data, list[tuple[Any, Any]]]:
        """Return maps and boxes of copies of the pictures, and mean and deviation of each map's channels."""
        arrays = self._arrays
        copies = copies_of(len(training))
        total = copies * len(training)
        shown: list[Sequence[Box]] = []  # boxes of each copy
        maps: list[Any] = []
        for index, picture in enumerate(training):
            whole, _ = opened(picture.path)
            chance = random.Random(f"{self._settings.seed}/{picture.id}")
            for number in range(copies):
                image, boxes = (whole, picture.boxes) if not number else targets.changed(whole, picture.boxes, chance)
                rows = session.run(None, {"image": sized(arrays, image, backbone)})
                maps = maps or [arrays.empty((total, *row.shape[1:]), arrays.float16) for row in rows]
                for values, row in zip(maps, rows, strict=True):
                    values[len(shown)] = row[0]
                shown.append(tuple(boxes))
            if self._stopping:
                raise InterruptedError
            if (index + 1) % max(1, len(training) // 10) == 0:
                say(report(Progress(PREPARATION * (index + 1) // len(training), 100 * self._share)))
                say(f"{(index + 1) * copies} of {total} pictures prepared")
        scaling = [standardize(arrays, values) for values in maps]
        importance = importance_of(arrays, training, self._labels)
        return fitting.Data(tuple(maps), shown, self._labels, cells, importance), scaling

    # ---- fitting

    def _fitted(
        self,
        data: fitting.Data,
        scaling: Sequence[tuple[Any, Any]],
        backbone: backbones.Backbone,
        validation: Sequence[Boxed],
        digest: str,
    ) -> Weights:
        """Return the weights with the best figure on the validation pictures."""
        arrays, seed = self._arrays, self._settings.seed
        weights = initial(arrays, [values.shape[-1] for values in data.maps], len(self._labels), seed)
        state, optimizer = fitting.CheckpointState(weights, 0, dict(weights), -1.0, 0), Adam(arrays, weights)
        folder = os.environ.get("TRAINING_CHECKPOINTS")
        checkpoint = Path(folder) / "detector.npz" if folder else None
        about = json.dumps([digest, seed, self._labels, len(data), [picture.id for picture in validation]])
        if checkpoint is not None and fitting.load(arrays, checkpoint, about, state, optimizer):
            say(f"continuing after epoch {state.epoch}")
        plan = fitting.FittingPlan.of(len(data))

        def figure(current: Weights) -> float:
            model = graph.detector(backbone, scaled(current, scaling), len(self._labels), {})
            result = self._figures(model, backbone, validation)
            return float((result["mAP50"] or 0) + (result["mAP75"] or 0)) / 2

        for epoch, value, compared in fitting.fit(arrays, data, state, optimizer, seed, plan, figure):
            done = PREPARATION + (100 - PREPARATION) * epoch // plan.epochs
            say(report(Progress(done, 100 * self._share)))
            say(report(Metric("loss", value, epoch)))
            if compared is not None:
                say(report(Metric("validation_mAP", compared, epoch)))
            if checkpoint is not None and (compared is not None or self._stopping):
                fitting.save(arrays, checkpoint, about, state, optimizer)
            if self._stopping:
                raise InterruptedError
        if state.epoch < plan.epochs:
            say(f"no better result since epoch {state.epoch - plan.interval * state.worse}: training ends early")
        return state.best

    # ---- results

    def _written(self, backbone: backbones.Backbone, weights: Weights) -> bytes:
        return graph.detector(backbone, weights, len(self._labels), {"names": repr(dict(enumerate(self._labels)))})

    def _figures(self, model: bytes, backbone: backbones.Backbone, pictures: Sequence[Boxed]) -> dict[str, Any]:
        """Return the figures of the file that is written, run as a machine runs it."""
        session, detections = session_of(self._runtime, model), []
        for picture in pictures:
            whole, _ = opened(picture.path)
            output = session.run(["location", "category", "score"], {"image": sized(self._arrays, whole, backbone)})
            if not all(self._arrays.isfinite(values).all() for values in output):
                raise ValueError("the written model does not work: its output has values that are not finite")
            location, category, score = (values[0].tolist() for values in output)
            detections.append(
                [
                    Box(self._labels[int(label)], edges[0], edges[1], edges[2], edges[3], certainty)
                    for edges, label, certainty in zip(location, category, score, strict=True)
                ]
            )
        return figures(pictures, detections, self._labels)


if __name__ == "__main__":
    sys.exit(main())
