"""Fitting of the detector's head: batches, rate, early stopping, checkpoints."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from training.trainers.detectors import targets
from training.trainers.detectors.boxes import Box
from training.trainers.detectors.network import Adam, Weights, backward, forward, loss

BATCH: Final = 8
RATE: Final = 4e-3
STEPS: Final = 1500  # at most; fewer with few pictures
LEAST_EPOCHS, MOST_EPOCHS = 12, 60
LOOKS: Final = 12  # comparisons with the validation pictures
PATIENCE: Final = 5  # comparisons without a better result, after which it ends


@dataclass(frozen=True, slots=True)
class Data:
    """Maps of all copies of all training pictures, and what they show.

    Targets have a number for each label and cell, 1.6 MB for 500 labels, so they are made for each batch.
    """

    maps: tuple[Any, ...]  # each [copies, height, width, channels]
    boxes: Sequence[Sequence[Box]]  # of each copy
    labels: Sequence[str]
    cells: int  # on a side of a target
    importance: Any  # of each label

    def __len__(self) -> int:
        return len(self.boxes)

    def batch(self, arrays: Any, chosen: Any) -> tuple[list[Any], dict[str, Any]]:
        """Return maps and targets of some copies."""
        rows = [targets.target(arrays, self.boxes[number], self.labels, self.cells) for number in chosen]
        target = {name: arrays.stack([row[name] for row in rows]) for name in rows[0]}
        return [values[chosen].astype(arrays.float32) for values in self.maps], target


@dataclass(slots=True)
class CheckpointState:
    """What a checkpoint holds, apart from the optimizer."""

    weights: Weights
    epoch: int
    best: Weights
    best_figure: float
    worse: int  # comparisons since the best


@dataclass(frozen=True, slots=True)
class FittingPlan:
    """How often to look at the data."""

    epochs: int
    interval: int  # epochs between two comparisons

    @classmethod
    def of(cls, copies: int) -> FittingPlan:
        """Return the plan for this many pictures in an epoch."""
        epochs = max(LEAST_EPOCHS, min(MOST_EPOCHS, STEPS * BATCH // max(1, copies)))
        return cls(epochs, max(1, epochs // LOOKS))


def rate_at(part: float) -> float:
    """Return the rate of learning after this part of the steps: it rises for a tenth, and then falls to 0."""
    return RATE * min(part / 0.1, 0.5 * (1 + math.cos(math.pi * max(0.0, part - 0.1) / 0.9)) + 1e-3)


def fit(
    arrays: Any,
    data: Data,
    state: CheckpointState,
    optimizer: Adam,
    seed: int,
    plan: FittingPlan,
    figure: Callable[[Weights], float],
) -> Iterator[tuple[int, float, float | None]]:
    """Change `state` until the plan is done or the figure gets no better.

    Yields the number of finished epochs, the loss, and the figure of the validation pictures if they were compared.
    The same seed and state continue in the same way.
    """
    batches = -(-len(data) // BATCH)
    while state.epoch < plan.epochs and state.worse < PATIENCE:
        order, total = arrays.random.default_rng([seed, state.epoch]).permutation(len(data)), 0.0
        for number in range(batches):
            maps, target = data.batch(arrays, order[number::batches])
            output, kept = forward(arrays, state.weights, maps)
            value, slope = loss(arrays, output, target, data.importance)
            part = (state.epoch * batches + number) / (plan.epochs * batches)
            optimizer.step(state.weights, backward(arrays, state.weights, maps, kept, slope), rate_at(part))
            total += value
        state.epoch += 1
        compared = None
        if state.epoch % plan.interval == 0 or state.epoch == plan.epochs:
            compared = figure(state.weights)
            state.worse += 1
            if compared >= state.best_figure:
                state.best, state.best_figure, state.worse = dict(state.weights), compared, 0
        yield state.epoch, total / batches, compared


def save(arrays: Any, path: Path, about: str, state: CheckpointState, optimizer: Adam) -> None:
    """Write a checkpoint, completely or not at all. `about` says what it belongs to."""
    values = {}
    for name, group in _groups(state, optimizer):
        values.update({f"{name}/{key}": value for key, value in group.items()})
    numbers = [state.epoch, state.best_figure, state.worse, optimizer.steps]
    partial = path.with_suffix(".partial.npz")
    arrays.savez(partial, about=json.dumps([about, numbers]), **values)
    partial.replace(path)


def load(arrays: Any, path: Path, about: str, state: CheckpointState, optimizer: Adam) -> bool:
    """Fill state and optimizer from a checkpoint; return False if there is none that fits."""
    if not path.is_file():
        return False
    try:
        with arrays.load(path, allow_pickle=False) as stored:
            subject, numbers = json.loads(str(stored["about"]))
            if subject != about:
                return False
            read = [{key: stored[f"{name}/{key}"] for key in state.weights} for name, _ in _groups(state, optimizer)]
    except (OSError, ValueError, KeyError):
        return False
    state.weights, state.best, optimizer.first, optimizer.second = read
    state.epoch, state.best_figure, state.worse, optimizer.steps = numbers
    return True


def _groups(state: CheckpointState, optimizer: Adam) -> list[tuple[str, Weights]]:
    return [
        ("weights", state.weights), ("best", state.best), ("first", optimizer.first), ("second", optimizer.second),
    ]  # fmt: skip
