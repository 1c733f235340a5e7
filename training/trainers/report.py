"""The report of a classifier: what it does on pictures that it was not trained with. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from training.trainers.examples import Example

MISTAKES: Final = 50  # worst mistakes in a report
THRESHOLD: Final = 0.5  # from which on a label of a multi-label model applies


def figures(
    examples: Sequence[Example], probabilities: Sequence[Sequence[float]], labels: Sequence[str], *, exclusive: bool
) -> dict[str, Any]:
    """Return accuracy, figures of each label, confusion matrix and worst mistakes."""
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
    return {**result, "worst_mistakes": mistakes[:MISTAKES]}


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
