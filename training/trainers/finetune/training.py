"""Trainer of classifiers: the last layers of a pretrained backbone and a head. Run as `python -m`, with PyTorch.

It writes the same files as `training.trainers.classification`. Its head begins as a linear one on averages over the
picture, fitted to the training pictures without those of the validation, so that fine-tuning can only improve the
validation loss.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from training.jobs.events import Metric, report
from training.trainers import backbone as backbones
from training.trainers import head as heads
from training.trainers.backbone import Backbone, Head
from training.trainers.choice import choose
from training.trainers.classification import MULTI, SINGLE, check_counts, compare, targets_of, write_model, write_report
from training.trainers.examples import Example, examples_of, parts
from training.trainers.features import opened, sized
from training.trainers.finetune.fitting import ClassifierNetwork, Fit, PixelArrays, Rules, key_of
from training.trainers.finetune.libraries import chosen_device, loaded, options
from training.trainers.finetune.network import FeatureNetwork
from training.trainers.program import distinct, say
from training.trainers.report import Accuracies, figures, remarks

LARGE: Final = 8 / 7  # size of the pictures that are cropped, relative to what the network takes
VALIDATION: Final = 0  # fold of the training pictures that decides when to stop
BATCH: Final = 32


def main(arguments: Sequence[str] | None = None) -> int:
    """Train; return the exit status."""
    parser = options(__doc__, (SINGLE, MULTI))
    parser.add_argument("--mirror", choices=("true", "false"), default="false", help="whether left and right are alike")
    settings = parser.parse_args(arguments)
    try:
        _Training(loaded(settings.seed), settings).run()
    except ValueError as error:
        say(f"ERROR: {error}")
        return 1
    return 0


class _Training:
    def __init__(self, torch: Any, settings: argparse.Namespace) -> None:
        self._settings, self._torch = settings, torch
        self._arrays: Any = importlib.import_module("numpy")
        self._exclusive = settings.model_type == SINGLE
        self._labels: list[str] = json.loads(settings.labels_file.read_text())
        self._begin = time.process_time()
        self._device = chosen_device(torch, settings.device)

    def run(self) -> None:
        settings, arrays, torch = self._settings, self._arrays, self._torch
        content = settings.backbone.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        try:
            backbone = backbones.read(content)
            network = FeatureNetwork(torch, arrays, backbone, settings.layers, self._device)
        except ValueError as error:
            raise ValueError(f"the backbone {settings.backbone.name} cannot be used: {error}") from error
        say(f"fine-tuning with PyTorch {torch.__version__} on {self._device}")
        with settings.dataset_file.open(encoding="utf-8") as lines:
            listed = examples_of(lines, self._labels, exclusive=self._exclusive)
        with tempfile.TemporaryFile() as exact, tempfile.TemporaryFile() as large:
            examples, stored, problems = self._read(backbone, listed, exact, large)
            check_counts(examples, self._labels)
            self._train(backbone, network, digest, examples, stored, problems)

    def _read(
        self, backbone: Backbone, listed: Sequence[Example], exact: Any, large: Any
    ) -> tuple[list[Example], tuple[Any, Any], dict[str, list[str]]]:
        """Return readable, different examples, their pictures in files, and the ids of the others."""
        from PIL import Image

        arrays, count = self._arrays, max(1, len(listed))
        size = round(backbone.width * LARGE), round(backbone.height * LARGE)
        same = arrays.memmap(exact, arrays.uint8, "w+", shape=(count, backbone.height, backbone.width, 3))
        larger = arrays.memmap(large, arrays.uint8, "w+", shape=(count, size[1], size[0], 3))
        examples: list[Example] = []
        problems: dict[str, list[str]] = {"unreadable": [], "duplicates": []}
        for example, whole in distinct(listed, lambda each: opened(each.path), problems):
            same[len(examples)] = sized(arrays, whole, backbone)[0]
            larger[len(examples)] = arrays.asarray(whole.resize(size, Image.Resampling.BILINEAR))
            examples.append(example)
        return examples, (same[: len(examples)], larger[: len(examples)]), problems

    def _train(
        self,
        backbone: Backbone,
        network: FeatureNetwork,
        digest: str,
        examples: list[Example],
        stored: tuple[Any, Any],
        problems: dict[str, list[str]],
    ) -> None:
        settings, arrays = self._settings, self._arrays
        part = arrays.array(parts(examples, settings.seed, heads.FOLDS))
        training, validation, test = (
            arrays.flatnonzero(chosen).tolist()
            for chosen in ((part >= 0) & (part != VALIDATION), part == VALIDATION, part < 0)
        )
        targets = targets_of(arrays, examples, self._labels)
        pictures = PixelArrays(*stored, targets, training, validation, self._exclusive)
        model, strength = self._first(network, pictures, part)
        folder = os.environ.get("TRAINING_CHECKPOINTS")
        key = key_of(
            backbone=digest,
            labels=self._labels,
            pictures=[[example.id, int(own)] for example, own in zip(examples, part, strict=True)],
            settings=[settings.model_type, settings.seed, settings.epochs, settings.layers, settings.mirror],
        )
        checkpoint = Path(folder) / "finetune.pt" if folder else None
        rules = Rules(settings.seed, settings.epochs, settings.mirror == "true", key, checkpoint)
        fit = Fit(self._torch, arrays, model, pictures, rules)
        fit.run(say)
        judged = {
            name: self._figures(fit, examples, chosen) for name, chosen in (("validation", validation), ("test", test))
        }
        lines = self._remarks(judged)
        written = self._written(backbone, model, network)
        shown = test or training
        predicted = fit.probabilities(shown[:8])
        runtime = importlib.import_module("onnxruntime")
        compare(
            arrays, runtime, written, backbone, [examples[index] for index in shown[:8]], predicted, len(self._labels)
        )
        more = {
            "backbone": {"file": settings.backbone.name, "sha256": digest},
            "regularization": {"chosen": strength},
            "fine_tuning": {
                "torch": str(self._torch.__version__),
                "device": self._device,
                "layers": settings.layers,
                "mirror": settings.mirror == "true",
                "epochs": fit.history,
                "best_epoch": fit.best,
                "validation": [examples[index].id for index in validation],
            },
            "remarks": lines,
            **judged,
            "processor_seconds": round(time.process_time() - self._begin, 2),
        }
        write_report(settings, self._labels, examples, part, problems, more)
        say("the model is complete")

    def _first(self, network: FeatureNetwork, pictures: PixelArrays, part: Any) -> tuple[ClassifierNetwork, float]:
        """Return the model before fine-tuning, and the regularization of its head."""
        torch, arrays, chosen = self._torch, self._arrays, list(pictures.training)
        groups: list[list[Any]] = []
        with torch.no_grad():
            for start in range(0, len(chosen), BATCH):
                batch = torch.tensor(pictures.exact[chosen[start : start + BATCH]], device=self._device)
                groups.append([rows.cpu().numpy() for rows in network.groups(batch)])
        rows = arrays.concatenate([arrays.concatenate(each, axis=1) for each in groups]).astype(float)
        sizes = [each.shape[1] for each in groups[0]]
        data = heads.Examples(rows, pictures.targets[chosen], sizes, self._exclusive)
        strength = choose(arrays, data, part[chosen]).candidate.strength
        return ClassifierNetwork(torch, network, rows, heads.fit(arrays, data, strength)), strength

    def _figures(self, fit: Fit, examples: Sequence[Example], chosen: Sequence[int]) -> dict[str, Any]:
        rows = fit.probabilities(chosen).tolist()
        return figures([examples[index] for index in chosen], rows, self._labels, exclusive=self._exclusive)

    def _remarks(self, judged: dict[str, dict[str, Any]]) -> list[str]:
        validation, test = judged["validation"], judged["test"]
        lines = remarks(
            Accuracies(
                validation["accuracy"],
                validation["accuracy_of_the_most_frequent_answer"],
                test["accuracy"],
                test["pictures"],
            )
        )
        if test["accuracy"] is not None:
            say(report(Metric("test_accuracy", test["accuracy"])))
        for line in lines:
            say(f"WARNING: {line}")
        return lines

    def _written(self, backbone: Backbone, model: ClassifierNetwork, network: FeatureNetwork) -> Path:
        head, floats = model.fitted(), self._arrays.float32
        layer = Head(
            head.weights.astype(floats).tobytes(),
            head.biases.astype(floats).tobytes(),
            len(head.weights),
            self._labels,
            self._exclusive,
        )
        settings = self._settings
        tuned = backbones.read(network.changed())
        return write_model(settings.model_output_directory, tuned, layer, settings.backbone)


if __name__ == "__main__":
    sys.exit(main())
