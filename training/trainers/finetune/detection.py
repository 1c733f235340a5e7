"""Trainer of detectors: the last layers of a pretrained backbone and a head. Run as `python -m`, with PyTorch.

It writes the same files as `training.trainers.detection`, and divides the pictures in the same way. It begins with that
trainer's detector, so that fine-tuning can only improve the mAP of the validation. The same seed, device and number of
threads give the same model, also after an interruption.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from PIL import Image

from training.jobs.events import Metric, Progress, report
from training.trainers import backbone as backbones
from training.trainers.detection import TYPES, FineTuningStart, Scaling, importance_of, train
from training.trainers.detectors import graph, targets
from training.trainers.detectors.boxes import Box
from training.trainers.detectors.graph import LEAST
from training.trainers.detectors.network import LONGEST, Weights
from training.trainers.features import opened, session_of, sized
from training.trainers.finetune.detector import DetectorNetwork, loss
from training.trainers.finetune.fitting import key_of
from training.trainers.finetune.libraries import chosen_device, loaded, options
from training.trainers.finetune.network import FeatureNetwork
from training.trainers.program import say

BATCH: Final = 8  # pictures of a step
STEPS: Final = 8  # of an epoch, at least: it shows few pictures several times, each time changed
PATIENCE: Final = 8  # epochs without a better mAP in the validation, after which training ends
NETWORK_RATE: Final = 1e-4
HEAD_RATE: Final = 3e-4
DECAY: Final = 1e-3  # of weights
LARGE: Final = 10 / 7  # size of the pictures that are cropped, relative to what the network takes
SHARE: Final = 10  # the head's fit is one part in this many of the progress
EQUAL: Final = 1e-2  # largest difference of the written file's scores and edges
COMPARED: Final = 8  # pictures


def main(arguments: Sequence[str] | None = None) -> int:
    """Train; return the exit status."""
    settings = options(__doc__, TYPES).parse_args(arguments)
    try:
        torch = loaded(settings.seed)
        device = chosen_device(torch, settings.device)

        def improve(start: FineTuningStart) -> tuple[backbones.Backbone, Weights, dict[str, Any]]:
            with tempfile.TemporaryFile() as file:
                return _FineTuning(torch, settings, start, device, file).run()

        return train(settings, improve, SHARE)
    except ValueError as error:
        say(f"ERROR: {error}")
        return 1


class _FineTuning:
    """`history` has the figures of each epoch, the first of them before any change."""

    def __init__(
        self, torch: Any, settings: argparse.Namespace, start: FineTuningStart, device: str, file: Any
    ) -> None:
        self._torch, self._settings, self._start, self._device, self._file = torch, settings, start, device, file
        self._arrays: Any = importlib.import_module("numpy")
        try:
            self._network = FeatureNetwork(torch, self._arrays, start.backbone, settings.layers, device)
        except ValueError as error:
            raise ValueError(f"the backbone {settings.backbone.name} cannot be used: {error}") from error
        importance = importance_of(self._arrays, start.training, start.labels)
        self._importance = torch.tensor(importance, device=device)
        self._history: list[dict[str, float]] = []
        self._best, self._best_state = 0, dict[str, Any]()
        folder = os.environ.get("TRAINING_CHECKPOINTS")
        self._checkpoint = Path(folder) / "finetune-detection.pt" if folder else None
        self._key = key_of(
            backbone=start.digest,
            labels=start.labels,
            pictures=[[[each.id, repr(each.boxes)] for each in part] for part in (start.training, start.validation)],
            settings=[settings.seed, settings.epochs, settings.layers],
        )

    def run(self) -> tuple[backbones.Backbone, Weights, dict[str, Any]]:
        """Train until the validation gets no better, and keep the best epoch; InterruptedError."""
        settings = self._settings
        say(f"fine-tuning with PyTorch {self._torch.__version__} on {self._device}")
        if (stored := self._stored()) is not None:
            model, optimizer = self._restored(stored)
            say(f"continuing after epoch {len(self._history) - 1}")
        else:
            model, optimizer = self._prepared(*self._start.fitted())
            self._judge(model, 0.0)
            self._save(model, optimizer)
            say(f"before fine-tuning: validation mAP {self._history[0]['validation_mAP']:.3f}")
        begin, first, pictures = time.monotonic(), len(self._history), self._read()
        while len(self._history) <= settings.epochs and len(self._history) - 1 - self._best < PATIENCE:
            epoch = len(self._history)
            self._judge(model, self._epoch(model, optimizer, pictures, epoch))
            self._save(model, optimizer)
            now = self._history[-1]
            left = (time.monotonic() - begin) / (epoch - first + 1) * (settings.epochs - epoch)
            say(
                f"epoch {epoch} of at most {settings.epochs}: training loss {now['training_loss']:.4f}, validation mAP"
                f" {now['validation_mAP']:.3f}; at most {left:.0f} s left"
            )
            for name, figure in now.items():
                say(report(Metric(f"fine_tuning_{name}", figure, epoch)))
            say(report(Progress(settings.epochs + (SHARE - 1) * epoch, settings.epochs * SHARE)))
        model.restore(self._best_state)
        say(f"the model is that of epoch {self._best}")
        backbone, weights = self._changed(), model.weights()
        self._compare(model, self._start.written(backbone, weights))
        about = {
            "torch": str(self._torch.__version__),
            "device": self._device,
            "layers": settings.layers,
            "epochs": self._history,
            "best_epoch": self._best,
        }
        return backbone, weights, {"fine_tuning": about}

    def _changed(self) -> backbones.Backbone:
        """Return the backbone with the tensors of now; without any that can change, as it was."""
        return backbones.read(self._network.changed()) if self._network.trained else self._start.backbone

    def _prepared(self, weights: Weights, scaling: Scaling) -> tuple[DetectorNetwork, Any]:
        """Return a model and its optimizer before any step."""
        self._scaling = scaling
        model = DetectorNetwork(self._torch, self._start.backbone, self._network, weights, scaling)
        groups = [
            {"params": list(each.values()), "lr": rate}
            for each, rate in ((self._network.trained, NETWORK_RATE), (model.head, HEAD_RATE))
            if each
        ]
        return model, self._torch.optim.AdamW(groups, weight_decay=DECAY)

    # ---- epochs

    def _read(self) -> Any:
        """Return the training pictures as numbers of 0 to 255, in a file, large enough to be cropped."""
        backbone, training = self._start.backbone, self._start.training
        size = round(backbone.width * LARGE), round(backbone.height * LARGE)
        shape = (len(training), size[1], size[0], 3)
        result = self._arrays.memmap(self._file, self._arrays.uint8, "w+", shape=shape)
        for number, picture in enumerate(training):
            whole, _ = opened(picture.path)
            result[number] = self._arrays.asarray(whole.resize(size, Image.Resampling.BILINEAR))
        return result

    def _epoch(self, model: DetectorNetwork, optimizer: Any, pictures: Any, epoch: int) -> float:
        """Change the model; return the mean loss."""
        order = [*range(len(pictures))] * max(1, -(-BATCH * STEPS // len(pictures)))
        chance, total = random.Random(f"{self._settings.seed}/{epoch}"), 0.0
        chance.shuffle(order)
        for first in range(0, len(order), BATCH):
            indices = order[first : first + BATCH]
            shown, target = self._batch(pictures, indices, chance)
            value = loss(self._torch, model.output(shown), target, self._importance)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            total += value.item() * len(indices)
            if self._start.stopping():
                raise InterruptedError
        return total / len(order)

    def _batch(self, pictures: Any, indices: Sequence[int], chance: random.Random) -> tuple[Any, dict[str, Any]]:
        """Return changed pictures, and what the head shall give for them."""
        start, training = self._start, self._start.training
        rows = [
            example(self._arrays, pictures[index], training[index].boxes, start.labels, start.backbone, chance)
            for index in indices
        ]
        stacked = {name: self._tensor(self._arrays.stack([row[name] for row in rows])) for name in rows[0]}
        return stacked.pop("picture"), stacked

    def _tensor(self, numbers: Any) -> Any:
        return self._torch.tensor(numbers, device=self._device)

    def _judge(self, model: DetectorNetwork, training_loss: float) -> None:
        """Append the figures of now, and keep the model if it is better than all before."""
        start = self._start
        result = start.judged(start.written(self._changed(), model.weights()), start.validation)
        figure = float((result["mAP50"] or 0) + (result["mAP75"] or 0)) / 2
        self._history.append({"training_loss": training_loss, "validation_mAP": figure})
        if len(self._history) == 1 or figure > self._history[self._best]["validation_mAP"]:
            self._best, self._best_state = len(self._history) - 1, model.state()

    # ---- the written file

    def _compare(self, model: DetectorNetwork, written: bytes) -> None:
        """Run the written file: its best box of a picture must be that of the model."""
        session = session_of(importlib.import_module("onnxruntime"), written)
        for picture in [*self._start.validation, *self._start.training][:COMPARED]:
            pixels = sized(self._arrays, opened(picture.path)[0], self._start.backbone)
            location, score = session.run(["location", "score"], {"image": pixels})
            with self._torch.no_grad():
                output = model.output(self._tensor(pixels))[0].cpu().numpy()
            difference = difference_of(self._arrays, output, location[0], score[0])
            if not difference <= EQUAL:
                raise ValueError(f"the written model differs from the trained one by {difference}")

    # ---- checkpoints

    def _save(self, model: DetectorNetwork, optimizer: Any) -> None:
        if self._checkpoint is None:
            return
        partial = self._checkpoint.with_suffix(".partial")
        content = {
            "key": self._key,
            "history": self._history,
            "best": self._best,
            "best_state": self._best_state,
            "state": model.state(),
            "optimizer": optimizer.state_dict(),
            "scaling": [[self._torch.tensor(values) for values in pair] for pair in self._scaling],
        }
        self._torch.save(content, partial)
        partial.replace(self._checkpoint)

    def _stored(self) -> dict[str, Any] | None:
        """Return the content of the checkpoint, or None if none fits."""
        if self._checkpoint is None or not self._checkpoint.is_file():
            return None
        try:
            content: dict[str, Any] = self._torch.load(self._checkpoint, map_location="cpu", weights_only=True)
        except Exception:  # whatever a damaged file raises: start from the beginning
            return None
        return content if content.get("key") == self._key else None

    def _restored(self, content: dict[str, Any]) -> tuple[DetectorNetwork, Any]:
        self._history, self._best, self._best_state = content["history"], content["best"], content["best_state"]
        head = {name[5:]: each.numpy() for name, each in content["state"].items() if name.startswith("head/")}
        model, optimizer = self._prepared(head, [(pair[0].numpy(), pair[1].numpy()) for pair in content["scaling"]])
        model.restore(content["state"])
        optimizer.load_state_dict(content["optimizer"])
        return model, optimizer


def example(
    arrays: Any,
    pixels: Any,
    boxes: Sequence[Box],
    labels: Sequence[str],
    backbone: backbones.Backbone,
    chance: random.Random,
) -> dict[str, Any]:
    """Return a changed `picture` [height, width, 3], and what the head shall give for it: see `targets.target`."""
    image, visible = targets.changed(Image.fromarray(pixels), boxes, chance)
    target = targets.target(arrays, visible, labels, graph.maps_of(backbone)[0][1])
    return {"picture": sized(arrays, image, backbone)[0], **target}


def difference_of(arrays: Any, output: Any, locations: Any, scores: Any) -> float:
    """Return the largest difference of score and edges of a file's best box and the output of the model.

    `output` is [cells, cells, labels + 4]. Cells whose scores are almost equal may be taken for each other.
    """
    cells = len(output)
    chances = 1 / (1 + arrays.exp(-output[..., :-4].max(axis=-1)))
    highest = float(chances.max())
    if not len(scores):
        return max(0.0, highest - LEAST)
    rows, columns = arrays.nonzero(chances >= highest - EQUAL)
    middles = arrays.stack([columns, rows, columns, rows], axis=1) + 0.5
    offsets = arrays.exp(arrays.clip(output[rows, columns, -4:], -LONGEST, LONGEST)) * [-1, -1, 1, 1]
    edges = arrays.clip((middles + offsets) / cells, 0, 1)
    return max(abs(highest - float(scores[0])), float(abs(edges - locations[0]).max(axis=1).min()))


if __name__ == "__main__":
    sys.exit(main())
