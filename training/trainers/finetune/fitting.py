"""Epochs of fine-tuning: changed pictures, two learning rates, early stopping, checkpoints. The same seed, device and
number of threads give the same model, also after an interruption.
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from training.jobs.events import Metric, Progress, report
from training.trainers import head as heads
from training.trainers.finetune.network import FeatureNetwork

BATCH: Final = 32  # pictures of a step; fewer if a set is small
SMALL: Final = 8  # pictures of a step, at least
STEPS: Final = 8  # of an epoch, at least, if there are so many pictures
HEAD_RATE: Final = 1e-4
NETWORK_RATE: Final = 1e-4
DECAY: Final = 1e-2  # of weights
PATIENCE: Final = 8  # epochs without a smaller validation loss, after which training ends
LEAST: Final = 0.85  # share of a picture's width and height that a crop keeps
LIGHT: Final = 0.2  # largest relative change of brightness, contrast and saturation
REPORTS: Final = 5  # of progress in an epoch
FORMAT: Final = 1  # of checkpoints


@dataclass(frozen=True, slots=True)
class PixelArrays:
    """Pictures as numbers of 0 to 255: `exact` as machines prepare them, `large` to be cropped."""

    exact: Any  # [count, height, width, 3]
    large: Any
    targets: Any  # [count, labels]
    training: Sequence[int]  # indices
    validation: Sequence[int]
    exclusive: bool


class ClassifierNetwork:
    """A network with a head. `parameters` has everything that is trained, by name."""

    def __init__(self, torch: Any, network: FeatureNetwork, rows: Any, fitted: heads.Fitted) -> None:
        center, spread = rows.mean(axis=0), rows.std(axis=0)
        spread[spread <= 1e-6] = 1.0
        self.network = network
        self._center, self._spread = center, spread
        device = network.device
        weights = fitted.weights * spread[:, None]
        biases = fitted.biases + center @ fitted.weights
        self._offset = torch.tensor(center, dtype=torch.float32, device=device)
        self._scale = torch.tensor(spread, dtype=torch.float32, device=device)
        self._torch = torch
        self.head = {
            "head/weights": torch.tensor(weights, dtype=torch.float32, device=device, requires_grad=True),
            "head/biases": torch.tensor(biases, dtype=torch.float32, device=device, requires_grad=True),
        }

    @property
    def parameters(self) -> dict[str, Any]:
        """All tensors that are trained."""
        return {**self.network.trained, **self.head}

    def scores(self, pictures: Any) -> Any:
        """Return a score of each label for a batch of pictures."""
        rows = self._torch.cat(self.network.groups(pictures), 1)
        return (rows - self._offset) / self._scale @ self.head["head/weights"] + self.head["head/biases"]

    def fitted(self) -> heads.Fitted:
        """Return the head for features as they are."""
        weights = self.head["head/weights"].detach().cpu().numpy().astype(float) / self._spread[:, None]
        biases = self.head["head/biases"].detach().cpu().numpy().astype(float) - self._center @ weights
        return heads.Fitted(weights, biases, 0.0)

    def state(self) -> dict[str, Any]:
        """Return copies of all tensors that are trained."""
        return {name: tensor.detach().cpu().clone() for name, tensor in self.parameters.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Set the tensors to those of `state`."""
        with self._torch.no_grad():
            for name, tensor in self.parameters.items():
                tensor.copy_(state[name])


def changed(arrays: Any, pixels: Any, size: tuple[int, int], chance: random.Random, *, mirror: bool) -> Any:
    """Return a part of a picture with another light, [height, width, 3], of `size` (width, height)."""
    from PIL import Image, ImageEnhance, ImageOps

    image = Image.fromarray(pixels)
    across, down = (chance.uniform(LEAST, 1.0) for _ in range(2))
    width, height = image.width * across, image.height * down
    left, top = chance.uniform(0, image.width - width), chance.uniform(0, image.height - height)
    image = image.resize(size, Image.Resampling.BILINEAR, box=(left, top, left + width, top + height))
    for enhancer in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
        image = enhancer(image).enhance(chance.uniform(1 - LIGHT, 1 + LIGHT))
    if mirror and chance.random() < 0.5:
        image = ImageOps.mirror(image)
    return arrays.asarray(image)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a fit depends on apart from the pictures."""

    seed: int
    epochs: int
    mirror: bool
    key: str  # of checkpoints: others are ignored
    checkpoint: Path | None


class Fit:
    """Trains a model in place. `history` has the figures of each epoch, the first of them before any training."""

    def __init__(self, torch: Any, arrays: Any, model: ClassifierNetwork, pictures: PixelArrays, rules: Rules) -> None:
        self._torch, self._arrays, self._model, self._pictures, self._rules = torch, arrays, model, pictures, rules
        self._weights = heads.balanced(arrays, pictures.targets, exclusive=pictures.exclusive)
        self._optimizer = torch.optim.AdamW(
            [
                {"params": list(model.network.trained.values()), "lr": NETWORK_RATE},
                {"params": list(model.head.values()), "lr": HEAD_RATE},
            ][0 if model.network.trained else 1 :],
            weight_decay=DECAY,
        )
        self.history: list[dict[str, float]] = []
        self.best, self._best_state = 0, model.state()

    def run(self, say: Callable[[str], None]) -> None:
        """Train until the validation loss stops falling, and keep the best epoch."""
        if self._load():
            say(f"continuing after epoch {len(self.history) - 1}")
        else:
            self._judge(0.0)
            say(f"before fine-tuning: validation loss {self.history[0]['validation_loss']:.4f}")
        for name in ("training_loss", "validation_loss", "validation_accuracy"):
            for epoch, figures in enumerate(self.history):
                say(report(Metric(name, figures[name], epoch)))
        begin, first = time.monotonic(), len(self.history)
        while len(self.history) <= self._rules.epochs and len(self.history) - 1 - self.best < PATIENCE:
            epoch = len(self.history)
            self._judge(self._epoch(epoch, say))
            self._save()
            now = self.history[-1]
            left = (time.monotonic() - begin) / (epoch - first + 1) * (self._rules.epochs - epoch)
            say(
                f"epoch {epoch} of at most {self._rules.epochs}: training loss {now['training_loss']:.4f}, validation"
                f" loss {now['validation_loss']:.4f}, accuracy {now['validation_accuracy']:.3f};"
                f" at most {left:.0f} s left"
            )
            for name, figure in now.items():
                say(report(Metric(name, figure, epoch)))
        self._model.restore(self._best_state)
        say(f"the model is that of epoch {self.best}")

    def probabilities(self, indices: Sequence[int]) -> Any:
        """Return the probabilities of pictures as machines prepare them."""
        torch, rows = self._torch, []
        with torch.no_grad():
            for start in range(0, len(indices), BATCH):
                scores = self._model.scores(self._tensor(self._pictures.exact[list(indices[start : start + BATCH])]))
                exclusive = self._pictures.exclusive
                rows.append((scores.softmax(1) if exclusive else scores.sigmoid()).cpu().numpy())
        return self._arrays.concatenate(rows) if rows else self._arrays.zeros((0, self._pictures.targets.shape[1]))

    def _tensor(self, numbers: Any) -> Any:
        return self._torch.tensor(numbers, device=self._model.network.device)

    def _loss(self, scores: Any, indices: list[int]) -> Any:
        functions = self._torch.nn.functional
        targets = self._tensor(self._pictures.targets[indices]).float()
        weights = self._tensor(self._weights[indices]).float()
        if self._pictures.exclusive:
            return (functions.cross_entropy(scores, targets, reduction="none") * weights[:, 0]).mean()
        return functions.binary_cross_entropy_with_logits(scores, targets, weights)

    def _epoch(self, epoch: int, say: Callable[[str], None]) -> float:
        pictures, rules = self._pictures, self._rules
        order = list(pictures.training)
        random.Random(f"{rules.seed}/{epoch}").shuffle(order)
        batch = max(SMALL, min(BATCH, -(-len(order) // STEPS)))
        height, width = pictures.exact.shape[1:3]
        interval, total = max(1, len(order) // batch // REPORTS), 0.0
        for step, start in enumerate(range(0, len(order), batch), 1):
            indices = order[start : start + batch]
            numbers = [
                changed(
                    self._arrays,
                    pictures.large[index],
                    (width, height),
                    random.Random(f"{rules.seed}/{epoch}/{index}"),
                    mirror=rules.mirror,
                )
                for index in indices
            ]
            loss = self._loss(self._model.scores(self._tensor(self._arrays.stack(numbers))), indices)
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()
            total += loss.item() * len(indices)
            if step % interval == 0:
                done = (epoch - 1) * len(order) + start + len(indices)
                say(report(Progress(done, rules.epochs * len(order))))
        return total / max(1, len(order))

    def _judge(self, training_loss: float) -> None:
        """Append the figures of now, and keep the model if it is the best."""
        pictures = self._pictures
        held = list(pictures.validation)
        predicted, truth = self.probabilities(held), pictures.targets[held]
        kept = self._arrays.clip(predicted, 1e-7, 1 - 1e-7)
        logs = truth * self._arrays.log(kept)
        if not pictures.exclusive:
            logs = logs + (1 - truth) * self._arrays.log(1 - kept)
        loss = float(-(self._weights[held] * logs).sum(axis=1).mean())
        if pictures.exclusive:
            right = predicted.argmax(axis=1) == truth.argmax(axis=1)
        else:
            right = ((predicted >= 0.5) == (truth > 0.5)).all(axis=1)
        self.history.append(
            {"training_loss": training_loss, "validation_loss": loss, "validation_accuracy": float(right.mean())}
        )
        if loss <= self.history[self.best]["validation_loss"]:
            self.best, self._best_state = len(self.history) - 1, self._model.state()

    def _save(self) -> None:
        if self._rules.checkpoint is None:
            return
        partial = self._rules.checkpoint.with_suffix(".partial")
        content = {
            "key": self._rules.key,
            "history": self.history,
            "best": self.best,
            "best_state": self._best_state,
            "state": self._model.state(),
            "optimizer": self._optimizer.state_dict(),
        }
        self._torch.save(content, partial)
        partial.replace(self._rules.checkpoint)

    def _load(self) -> bool:
        path = self._rules.checkpoint
        if path is None or not path.is_file():
            return False
        try:
            content = self._torch.load(path, map_location="cpu", weights_only=True)
        except Exception:  # whatever a damaged file raises: start from the beginning
            return False
        if content.get("key") != self._rules.key:
            return False
        self.history, self.best, self._best_state = content["history"], content["best"], content["best_state"]
        self._model.restore(content["state"])
        self._optimizer.load_state_dict(content["optimizer"])
        return True


def key_of(**facts: Any) -> str:
    """Return a digest of everything that a checkpoint depends on."""
    return hashlib.sha256(json.dumps([FORMAT, facts], sort_keys=True).encode()).hexdigest()
