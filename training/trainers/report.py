"""The report of a classifier: what it does on pictures that it was not trained with. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from training.trainers.examples import Example

MISTAKES: Final = 50  # worst mistakes in a report
HARDLY: Final = 0.15  # share of what could be won over the most frequent answer, below which a model is hardly better
WEAK: Final = 0.8  # accuracy below which the backbone is called weak
GAP: Final = 0.15  # between accuracies that should be alike
SCORED: Final = 2000  # pictures whose probabilities are in a report
SCORES: Final = 100_000  # probabilities in a report
FEW: Final = 20  # pictures in a test
THRESHOLD: Final = 0.5  # from which on a label of a multi-label model applies


@dataclass(frozen=True, slots=True)
class Accuracies:
    """Shares of pictures that a classifier labels rightly without having been fitted to them."""

    cross_validated: float  # by heads that were fitted to the other parts of the training pictures
    most_frequent_answer: float  # of always giving the most frequent answer
    test: float | None  # None without a test
    test_pictures: int


def remarks(accuracies: Accuracies) -> list[str]:
    """Return what the figures mean for using the model, in sentences for people; none if all is well."""
    right, chance, test = accuracies.cross_validated, accuracies.most_frequent_answer, accuracies.test
    lines = []
    if right < chance + HARDLY * (1 - chance):
        lines.append(
            f"The model is hardly better than always answering the same: {right:.0%} of the pictures are labelled"
            f" rightly, against {chance:.0%}. The backbone does not see what distinguishes these labels. Check the"
            " labels, show larger parts of the objects, or train the whole network with a script."
        )
    elif right < WEAK:
        lines.append(
            f"For these labels, the backbone is weak: {right:.0%} of the pictures are labelled rightly. It tells"
            " particular objects apart better than broad kinds of objects. More pictures of each label help, and so"
            " do pictures in which the object is large."
        )
    if test is not None and accuracies.test_pictures >= FEW and test < right - GAP:
        lines.append(
            f"The accuracy in the test, {test:.0%}, is lower than the {right:.0%} among the training pictures: there"
            " may be too few pictures, or pictures of the test differ from the others."
        )
    if accuracies.test_pictures < FEW:
        lines.append(
            f"The test has only {accuracies.test_pictures} pictures, so its accuracy says little: one picture more or"
            " less changes it considerably."
        )
    return lines


def figures(
    examples: Sequence[Example], probabilities: Sequence[Sequence[float]], labels: Sequence[str], *, exclusive: bool
) -> dict[str, Any]:
    """Return accuracy, figures of each label, confusion matrix worst mistakes, and the probabilities themselves."""
    predicted = [_labels(row, labels, exclusive=exclusive) for row in probabilities]
    pairs = list(zip(examples, predicted, probabilities, strict=True))
    right = sum(set(example.labels) == set(names) for example, names, _ in pairs)
    result: dict[str, Any] = {
        "pictures": len(examples),
        "accuracy": right / len(examples) if examples else None,
        "accuracy_of_the_most_frequent_answer": _most_frequent(examples),
        "labels": {label: _of_label(label, pairs) for label in labels},
    }
    if exclusive:
        counts = Counter((example.labels[0], names[0]) for example, names, _ in pairs)
        result["confusion"] = [[counts[truth, guess] for guess in labels] for truth in labels]
    mistakes = [
        {
            "id": example.id,
            "labels": list(example.labels),
            "predicted": names,
            "probabilities": {label: round(value, 4) for label, value in zip(labels, row, strict=True)},
        }
        for example, names, row in sorted(pairs, key=lambda pair: _of_truth(pair[0], pair[2], labels))
        if set(example.labels) != set(names)
    ]
    rows = max(1, min(SCORED, SCORES // max(1, len(labels))))
    scores = [
        {"id": example.id, "labels": list(example.labels), "probabilities": [round(value, 4) for value in row]}
        for example, row in list(zip(examples, probabilities, strict=True))[:rows]
    ]
    return {**result, "worst_mistakes": mistakes[:MISTAKES], "scores": scores}


def _labels(row: Sequence[float], labels: Sequence[str], *, exclusive: bool) -> list[str]:
    if exclusive:
        return [labels[max(range(len(labels)), key=lambda index: row[index])]]
    return [label for label, value in zip(labels, row, strict=True) if value >= THRESHOLD]


def _of_label(label: str, pairs: Sequence[tuple[Example, list[str], Sequence[float]]]) -> dict[str, Any]:
    truths = sum(label in example.labels for example, _, _ in pairs)
    guesses = sum(label in names for _, names, _ in pairs)
    both = sum(label in example.labels and label in names for example, names, _ in pairs)
    return {
        "pictures": truths,
        "precision": both / guesses if guesses else None,
        "recall": both / truths if truths else None,
    }


def _most_frequent(examples: Sequence[Example]) -> float | None:
    if not examples:
        return None
    return max(Counter(example.labels for example in examples).values()) / len(examples)


def _of_truth(example: Example, row: Sequence[float], labels: Sequence[str]) -> float:
    """Return the smallest probability of a label that applies."""
    return min(row[labels.index(label)] for label in example.labels)
