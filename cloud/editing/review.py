"""Differences between two configurations, as a summary and line by line; secrets are masked. Pure."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cloud.editing.documents import written
from schema import Difference, Masker, difference, fragments_difference
from schema.document import CLOUD_KEYS, decode_document_value

CONTEXT: Final = 3  # unchanged lines around each change
PRECISE: Final = 5000  # lines; the difference of longer texts may be larger than necessary, to be fast
MOST_LINES: Final = 40_000  # lines of both texts together; above this, or MOST_PAIRS equal pairs, no lines are compared
MOST_PAIRS: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class ChangedEntry:
    """An entry that is added, removed or changed: `sign` is `+`, `-` or `~`."""

    sign: str
    title: str  # components.left
    lines: tuple[str, ...] = ()  # attributes.max_rpm: 60 -> 90


@dataclass(frozen=True, slots=True)
class DifferenceLine:
    """A line of the text difference; `sign` is `+`, `-`, a space, or `@` for omitted lines."""

    sign: str
    old: int | None
    new: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Review:
    """The differences between two documents; false if there are none."""

    groups: tuple[ChangedEntry, ...]
    lines: tuple[DifferenceLine, ...]
    renamed: tuple[tuple[str, str], ...] = ()
    hidden: bool = False  # the documents differ, but only in parts that are not shown
    long: bool = False  # the documents differ, but have too many lines for a line-by-line comparison

    def __bool__(self) -> bool:
        return bool(self.groups or self.lines or self.hidden or self.long)

    @property
    def summary(self) -> str:
        """Counts of changes, such as `1 added, 2 changed`."""
        kinds = (("added", "+"), ("removed", "-"), ("changed", "~"))
        counts = [(sum(group.sign == sign for group in self.groups), word) for word, sign in kinds]
        return ", ".join(f"{count} {word}" for count, word in counts if count) or ("changed" if self else "no changes")


def review(old: Mapping[str, Any], new: Mapping[str, Any]) -> Review:
    """Compare two documents: the result describes how to change `old` into `new`."""
    masker = Masker().and_those_of(old).and_those_of(new)
    compared_lines = _lines(written(masker.value(old)), written(masker.value(new)))
    lines = tuple(compared_lines or ())
    before, after = decode_document_value(old).readable, decode_document_value(new).readable
    groups: list[ChangedEntry] = []
    renamed: tuple[tuple[str, str], ...] = ()
    if before is not None and after is not None:
        resources = difference(before, after)
        renamed = resources.renamed
        groups += _groups(resources, masker)
    fragments = fragments_difference(old, new)
    groups += _groups(fragments, masker)
    for key in CLOUD_KEYS:
        if old.get(key) != new.get(key) and not fragments:
            groups.append(ChangedEntry("+" if key not in old else "-" if key not in new else "~", key))
    long = compared_lines is None
    return Review(tuple(groups), lines, renamed, hidden=not groups and not lines and not long and old != new, long=long)


def _groups(changes: Difference, masker: Masker) -> list[ChangedEntry]:
    return [
        *(ChangedEntry("-", masker.text(path)) for path in changes.removed),
        *(ChangedEntry("+", masker.text(path)) for path in changes.added),
        *(
            ChangedEntry(
                "~",
                changed_entry.path,
                tuple(masker.text(line.removeprefix(f"{changed_entry.path}.")) for line in changed_entry.lines),
            )
            for changed_entry in changes.changed
        ),
    ]


def _lines(old: str, new: str) -> list[DifferenceLine] | None:
    """Return the difference of two texts; None if computing it would take too long."""
    if old == new:
        return []
    all_lines = old.splitlines(), new.splitlines()
    first, last = _around(*all_lines)
    before, after = (text_lines[first : len(text_lines) - last] for text_lines in all_lines)
    coarse = max(len(before), len(after)) > PRECISE or _pairs(before, after) > MOST_PAIRS
    if len(before) + len(after) > MOST_LINES or (coarse and _pairs(before, after, coarse=True) > MOST_PAIRS):
        return None
    return list(_compared(before, after, first, coarse=coarse))


def _pairs(before: Sequence[str], after: Sequence[str], *, coarse: bool = False) -> int:
    """Return the number of pairs of equal lines, which bounds the steps of difflib for each piece. `coarse` models its
    autojunk heuristic, which ignores lines that make up more than one percent of `after`."""
    counts = Counter(after)
    if coarse and len(after) >= 200:
        popular_limit = len(after) // 100 + 1
        counts = Counter({line: count for line, count in counts.items() if count <= popular_limit})
    return sum(counts[line] for line in before)


def _compared(before: Sequence[str], after: Sequence[str], first: int, *, coarse: bool) -> Iterator[DifferenceLine]:
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=coarse)
    for number, group in enumerate(matcher.get_grouped_opcodes(CONTEXT)):
        if number or first or group[0][1] or group[0][3]:
            yield DifferenceLine("@", None, None, "")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                for offset, text in enumerate(before[i1:i2]):
                    yield DifferenceLine(" ", first + i1 + offset + 1, first + j1 + offset + 1, text)
                continue
            for offset, text in enumerate(before[i1:i2]):
                yield DifferenceLine("-", first + i1 + offset + 1, None, text)
            for offset, text in enumerate(after[j1:j2]):
                yield DifferenceLine("+", None, first + j1 + offset + 1, text)


def _around(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """Return how many equal lines at the start and end need no comparison, leaving context for the changes."""
    shorter = min(len(before), len(after))
    first = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    last = next((at for at in range(shorter - first) if before[-1 - at] != after[-1 - at]), shorter - first)
    return max(0, first - CONTEXT), max(0, last - CONTEXT)
