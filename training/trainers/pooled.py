"""A head that scores the cells of a picture and pools the scores, fitted with numpy. The same data give the same head.

It notices an object that is small in the picture, or one of several, which averages over the picture hide.
`arrays` is the module numpy, which is not imported at the top: most of the project runs without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from training.trainers.head import activated, balanced, parts_of

DIRECTIONS: Final = 128
"""Number of features of a cell after the reduction: with 64 the accuracy was lower, with 256 not higher."""
SAMPLE: Final = 128  # pictures that decide on the directions
STEPS: Final = 100
BATCH: Final = 128  # pictures of a step
RATE: Final = 0.2
T = TypeVar("T")
_MEMORY: Final = (0.9, 0.99)  # of the optimizer (Adam), for the gradient and its square


@dataclass(frozen=True, slots=True)
class Basis:
    """The directions in which the cells of some pictures differ most: (cell - center) / scale @ directions."""

    center: Any
    scale: Any
    directions: Any

    def reduced(self, arrays: Any, cells: Any) -> Any:
        """Return cells [..., features] in the directions, as float16 to save memory: 12.5 kB for 49 cells."""
        return (((cells - self.center) / self.scale) @ self.directions).astype(arrays.float16)


@dataclass(frozen=True, slots=True)
class Pooled:
    """Scores of cells are cells @ weights; `biases` are added to the pooled scores."""

    weights: Any
    biases: Any
    sharpness: float

    def probabilities(self, arrays: Any, cells: Any, *, exclusive: bool) -> Any:
        """Return the probability of each label for reduced cells [pictures, cells, directions]."""
        batches = [
            pooled(arrays, self._scores(arrays, cells[first : first + BATCH]), self.sharpness)[0] + self.biases
            for first in range(0, len(cells), BATCH)
        ]
        scores = arrays.concatenate(batches) if batches else arrays.zeros((0, len(self.biases)))
        return activated(arrays, scores, exclusive=exclusive)

    def _scores(self, arrays: Any, cells: Any) -> Any:
        return cells.astype(arrays.float32) @ self.weights

    def unreduced(self, basis: Basis) -> tuple[Any, Any]:
        """Return weights and biases for cells as the backbone gives them."""
        weights = (basis.directions @ self.weights) / basis.scale[:, None]
        return weights, self.biases - basis.center @ weights


def sample_of(pictures: Sequence[T]) -> list[T]:
    """Return at most SAMPLE of the pictures, from all parts of the list: neighbours are often alike."""
    step = max(1.0, len(pictures) / SAMPLE)
    return [pictures[int(number * step)] for number in range(min(SAMPLE, len(pictures)))]


def basis_of(arrays: Any, cells: Any, groups: Sequence[int]) -> Basis:
    """Return the basis of cells [count, features]; how much the features of a map count is as in `head.fit`."""
    center, spread = cells.mean(axis=0), cells.std(axis=0)
    scale = arrays.where(spread > 1e-6, spread, 1.0) * arrays.repeat(parts_of(groups), groups) ** 0.5
    standardized = ((cells - center) / scale).astype(arrays.float32)
    _, vectors = arrays.linalg.eigh(standardized.T @ standardized)  # the largest last
    return Basis(center, scale, vectors[:, ::-1][:, :DIRECTIONS].astype(arrays.float32))


def pooled(arrays: Any, scores: Any, sharpness: float) -> tuple[Any, Any]:
    """Return pooled scores [pictures, labels] of scores [pictures, cells, labels], and the share of each cell in them.

    The shares are the derivatives, and their sum over the cells is 1.
    """
    largest = scores.max(axis=1, keepdims=True)
    powers = arrays.exp(sharpness * (scores - largest))
    mean = powers.mean(axis=1, keepdims=True)
    return (arrays.log(mean) / sharpness + largest)[:, 0], powers / (scores.shape[1] * mean)


def fit(arrays: Any, cells: Any, targets: Any, sharpness: float, strength: float, *, exclusive: bool) -> Pooled:
    """Fit a head to reduced cells [pictures, cells, directions] and targets [pictures, labels] of 0 and 1.

    Labels with few examples weigh as much as others. A step sees at most BATCH pictures, so that the time grows with
    the number of labels, and hardly with that of pictures.
    """
    count, labels = targets.shape
    importance = balanced(arrays, targets, exclusive=exclusive)
    chance, order = arrays.random.default_rng(0), arrays.arange(0)
    values = [arrays.zeros((cells.shape[2], labels), arrays.float32), arrays.zeros(labels)]
    means, squares = [0.0, 0.0], [0.0, 0.0]
    size = min(BATCH, count)
    for step in range(1, STEPS + 1):
        if len(order) < size:
            order = arrays.concatenate([order, chance.permutation(count)])
        batch, order = order[:size], order[size:]
        shown = cells[batch].astype(arrays.float32)
        scores, shares = pooled(arrays, shown @ values[0], sharpness)
        predicted = activated(arrays, scores + values[1], exclusive=exclusive)
        errors = importance[batch] * (predicted - targets[batch]) / size
        by_cell = (shares * errors[:, None]).reshape(-1, labels).astype(arrays.float32)
        kernel = shown.reshape(-1, shown.shape[2]).T @ by_cell + strength / count * values[0]
        rate = RATE * (1 - step / STEPS)
        for index, (gradient, share) in enumerate(((kernel, 1.0), (errors.sum(axis=0), 0.5))):
            means[index] = _MEMORY[0] * means[index] + (1 - _MEMORY[0]) * gradient
            squares[index] = _MEMORY[1] * squares[index] + (1 - _MEMORY[1]) * gradient**2
            mean, square = means[index] / (1 - _MEMORY[0] ** step), squares[index] / (1 - _MEMORY[1] ** step)
            change = rate * share * mean / (square**0.5 + 1e-8)
            values[index] = (values[index] - change).astype(values[index].dtype)
    return Pooled(values[0], values[1], sharpness)
