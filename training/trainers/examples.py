"""Examples of a dataset: reading its description, and dividing them into parts. Pure."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

TEST_SHARE: Final = 0.2
RARE: Final = 4  # pictures of a combination of labels, below which it is divided together with other such combinations


@dataclass(frozen=True, slots=True)
class Example:
    """A picture and which of the labels apply to it."""

    id: str
    path: str
    labels: tuple[str, ...]


def examples_of(lines: Iterable[str], labels: Sequence[str], *, exclusive: bool) -> list[Example]:
    """Return the examples of `dataset.jsonl`: with `exclusive`, pictures with exactly one label, otherwise with any."""
    examples = []
    for line in lines:
        entry = json.loads(line)
        named = {annotation["annotation_label"] for annotation in entry.get("classification_annotations") or ()}
        own = tuple(label for label in labels if label in named)
        if len(own) == 1 or (own and not exclusive):
            path = str(entry["image_path"])
            examples.append(Example(str(entry.get("binary_data_id") or path), path, own))
    return examples


def parts(examples: Sequence[Example], seed: int, folds: int) -> list[int]:
    """Return the part of each example: -1 for the test, otherwise the number of its fold.

    Each combination of labels is divided in the same shares, and so are all rare ones together. The division depends on
    the ids, the labels and the seed only, so few pictures move to another part when others are added.
    """
    counts = Counter(example.labels for example in examples)
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for index, example in enumerate(examples):
        groups[example.labels if counts[example.labels] >= RARE else ()].append(index)
    result = [0] * len(examples)
    for group in groups.values():
        ordered = sorted(group, key=lambda index: _draw(examples[index].id, seed))
        tests = max(1, round(TEST_SHARE * len(ordered))) if len(ordered) > 2 else 0
        for position, index in enumerate(ordered):
            result[index] = -1 if position < tests else (position - tests) % folds
    return result


def _draw(subject: str, seed: int) -> str:
    return hashlib.sha256(f"{seed}/{subject}".encode("utf-8", "surrogatepass")).hexdigest()
