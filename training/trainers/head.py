"""The linear head: regularized logistic regression on features, with numpy. The same data give the same head.

`arrays` is the module numpy, which is not imported at the top: most of the project runs without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

SHARES: Final = (5.0, 4.0, 1.0)
"""How much the features of each map count together, the backbone's last map first; further ones count as the last."""
FOLDS: Final = 4
STEPS: Final = 400  # of the optimization; it ends earlier if nothing changes any more
TOLERANCE: Final = 1e-5  # of the gradient
_TINY: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Fitted:
    """A head: scores are features @ weights + biases."""

    weights: Any
    biases: Any
    strength: float


@dataclass(frozen=True, slots=True)
class Examples:
    """Features [count, size] and targets [count, labels] of 0 and 1."""

    features: Any
    targets: Any
    groups: Sequence[int]  # how many of the features come from each map of the backbone, in their order
    exclusive: bool  # each example has exactly one label
    cells: Any = None  # [count, cells, directions], reduced by a basis of `pooled`; None if the backbone has no grid

    def part(self, chosen: Any) -> Examples:
        """Return the examples that `chosen` selects."""
        cells = None if self.cells is None else self.cells[chosen]
        return replace(self, features=self.features[chosen], targets=self.targets[chosen], cells=cells)


def fit(arrays: Any, examples: Examples, strength: float) -> Fitted:
    """Fit a head.

    Labels with few examples weigh as much as others. How much the features of a map count does not depend on their
    number, but on SHARES. The features are standardized for the fit; the result applies to them as they are.
    """
    features, targets, exclusive = examples.features, examples.targets, examples.exclusive
    center, spread = features.mean(axis=0), features.std(axis=0)
    sizes = arrays.repeat(arrays.array(parts_of(examples.groups)), examples.groups)
    spread = arrays.where(spread > 1e-6, spread, 1.0) * sizes**0.5
    scaled = (features - center) / spread
    # The best weights are combinations of the examples, so that few examples make a small problem whatever their size.
    left, singular, right = arrays.linalg.svd(scaled, full_matrices=False)
    reduced = left * singular
    weights_of_examples = balanced(arrays, targets, exclusive=exclusive)
    inner, biases = _minimized(arrays, reduced, targets, weights_of_examples, strength, exclusive=exclusive)
    weights = (right.T @ inner) / spread[:, None]
    return Fitted(weights, biases - center @ weights, strength)


def parts_of(groups: Sequence[int]) -> list[float]:
    """Return for each map the number of its features, divided by the share of the map."""
    shares = [*SHARES, *SHARES[-1:] * len(groups)][: len(groups)]
    return [size * sum(shares) / share for size, share in zip(groups, shares, strict=True)]


def probabilities(arrays: Any, features: Any, head: Fitted, *, exclusive: bool) -> Any:
    """Return the probability of each label for each row of features."""
    return activated(arrays, features @ head.weights + head.biases, exclusive=exclusive)


def loss(arrays: Any, predicted: Any, targets: Any, *, exclusive: bool) -> float:
    """Return the mean logarithmic loss."""
    positive = targets * arrays.log(predicted + _TINY)
    if exclusive:
        return float(-positive.sum(axis=1).mean())
    return float(-(positive + (1 - targets) * arrays.log(1 - predicted + _TINY)).mean())


def balanced(arrays: Any, targets: Any, *, exclusive: bool) -> Any:
    """Return weights [count, labels or 1] whose mean is about 1."""
    counts = arrays.maximum(targets.sum(axis=0), 1.0)
    if exclusive:
        return (targets @ (len(targets) / (targets.shape[1] * counts)))[:, None]
    others = arrays.maximum(len(targets) - counts, 1.0)
    return targets * (len(targets) / (2 * counts)) + (1 - targets) * (len(targets) / (2 * others))


def _minimized(
    arrays: Any, reduced: Any, targets: Any, weights: Any, strength: float, *, exclusive: bool
) -> tuple[Any, Any]:
    """Minimize the weighted loss by accelerated gradient descent with restarts (FISTA)."""
    count, labels = len(targets), targets.shape[1]
    extended = arrays.hstack([reduced, arrays.ones((count, 1))])  # the last column is the bias, not regularized
    penalty = arrays.full((extended.shape[1], 1), strength / count)
    penalty[-1] = 0.0
    largest = arrays.linalg.norm(extended, 2) ** 2
    step = 1.0 / (0.5 * largest * float(weights.max()) / count + strength / count)
    current = arrays.zeros((extended.shape[1], labels))
    ahead, momentum = current, 1.0
    for _ in range(STEPS):
        predicted = activated(arrays, extended @ ahead, exclusive=exclusive)
        gradient = extended.T @ (weights * (predicted - targets)) / count + penalty * ahead
        following = ahead - step * gradient
        if (gradient * (following - current)).sum() > 0:  # the momentum leads uphill
            ahead, momentum = current, 1.0
            continue
        growth = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = following + (momentum - 1) / growth * (following - current)
        current, momentum = following, growth
        if abs(gradient).max() < TOLERANCE:
            break
    return current[:-1], current[-1]


def activated(arrays: Any, scores: Any, *, exclusive: bool) -> Any:
    """Return the probabilities of scores [count, labels]."""
    if not exclusive:
        return 1 / (1 + arrays.exp(-arrays.clip(scores, -500, 500)))
    grown = arrays.exp(scores - scores.max(axis=1, keepdims=True))
    return grown / grown.sum(axis=1, keepdims=True)
