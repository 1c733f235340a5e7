"""Which head fits some examples best, by predictions for pictures that it was not fitted to. Pure, with numpy.

`arrays` is the module numpy, which is not imported at the top: most of the project runs without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from training.trainers import head, pooled
from training.trainers.head import FOLDS, Examples, Fitted, loss
from training.trainers.pooled import Basis, Pooled


@dataclass(frozen=True, slots=True)
class HeadCandidate:
    """A way to fit a head: to averages over the picture, or with a `sharpness` to cells whose scores are pooled."""

    strength: float  # of the regularization
    sharpness: float = 0.0

    def __str__(self) -> str:
        what = f"cells, sharpness {self.sharpness:g}" if self.sharpness else "averages"
        return f"{what}, regularization {self.strength:g}"


CANDIDATES: Final = (
    *(HeadCandidate(strength) for strength in (10.0, 1.0, 0.1, 0.01, 0.001)),
    *(HeadCandidate(strength, 1.0) for strength in (0.1, 0.01, 0.001)),
    *(HeadCandidate(strength, 4.0) for strength in (0.1, 0.01)),
)
"""Of equal ones, the first is used: averages before cells, and a strong regularization before a weak one."""


@dataclass(frozen=True, slots=True)
class Classifier:
    """A fitted head."""

    candidate: HeadCandidate
    fitted: Fitted | Pooled

    def probabilities(self, arrays: Any, examples: Examples) -> Any:
        """Return the probability of each label [count, labels]; the targets are not used."""
        if isinstance(self.fitted, Pooled):
            return self.fitted.probabilities(arrays, examples.cells, exclusive=examples.exclusive)
        return head.probabilities(arrays, examples.features, self.fitted, exclusive=examples.exclusive)

    def layer(self, basis: Basis | None) -> tuple[Any, Any]:
        """Return weights [features, labels] and biases for what the backbone gives; `basis` is that of the cells."""
        if isinstance(self.fitted, Pooled):
            assert basis is not None
            return self.fitted.unreduced(basis)
        return self.fitted.weights, self.fitted.biases


@dataclass(frozen=True, slots=True)
class Choice:
    """The best candidate, the losses of all, and its predictions for pictures that it was not fitted to."""

    candidate: HeadCandidate
    losses: dict[HeadCandidate, float]
    held_out: Any


def fit(arrays: Any, examples: Examples, candidate: HeadCandidate) -> Classifier:
    """Fit a head with the settings of the candidate."""
    if candidate.sharpness:
        settings = candidate.sharpness, candidate.strength
        own = pooled.fit(arrays, examples.cells, examples.targets, *settings, exclusive=examples.exclusive)
        return Classifier(candidate, own)
    return Classifier(candidate, head.fit(arrays, examples, candidate.strength))


def candidates_of(examples: Examples) -> Sequence[HeadCandidate]:
    """Return the candidates for these examples: without cells, only those with averages."""
    return [candidate for candidate in CANDIDATES if not candidate.sharpness or examples.cells is not None]


def choose(
    arrays: Any,
    examples: Examples,
    folds: Any,
    each: Callable[[HeadCandidate, float], None] = lambda candidate, value: None,
) -> Choice:
    """Return the candidate with the smallest loss on held-out pictures; call `each` after each comparison.

    `folds` has the number of the part, 0 to FOLDS - 1, in which each picture is held out.
    """
    losses: dict[HeadCandidate, float] = {}
    predictions: dict[HeadCandidate, Any] = {}
    for candidate in candidates_of(examples):
        predictions[candidate] = held_out(arrays, examples, folds, candidate)
        losses[candidate] = loss(arrays, predictions[candidate], examples.targets, exclusive=examples.exclusive)
        each(candidate, losses[candidate])
    best = min(losses, key=lambda candidate: losses[candidate])
    return Choice(best, losses, predictions[best])


def held_out(arrays: Any, examples: Examples, folds: Any, candidate: HeadCandidate) -> Any:
    """Return the probabilities that a head gives to each example that was not fitted to its fold."""
    result = arrays.zeros(examples.targets.shape)
    for fold in range(FOLDS):
        held = folds == fold
        if held.any() and not held.all():
            fitted = fit(arrays, examples.part(~held), candidate)
            result[held] = fitted.probabilities(arrays, examples.part(held))
    return result
