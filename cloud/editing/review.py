"""What a change of a configuration does, in words and line by line; secrets are masked. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cloud.editing.documents import written
from schema.diff import difference
from schema.machine import decode_value
from schema.secrets import Masker

CONTEXT: Final = 3  # unchanged lines around each change
PRECISE: Final = 5000  # lines; the difference of longer texts may show more than it must, so that it takes no seconds
CLOUD_ONLY: Final = ("fragments", "fragment_mods")


@dataclass(frozen=True, slots=True)
class Group:
    """One thing that is added, removed or changed: `sign` is one of `+`, `-` and `~`."""

    sign: str
    title: str  # components.left
    lines: tuple[str, ...] = ()  # attributes.max_rpm: 60 -> 90


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the text difference; `sign` is `+`, `-`, a blank, or `@` for lines left out."""

    sign: str
    old: int | None
    new: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Review:
    """What differs between two documents. Nothing at all if it is false."""

    groups: tuple[Group, ...]
    lines: tuple[Line, ...]
    renamed: tuple[tuple[str, str], ...] = ()
    hidden: bool = False  # it differs, but only in what is not shown

    def __bool__(self) -> bool:
        return bool(self.groups or self.lines or self.hidden)

    @property
    def summary(self) -> str:
        """Such as `1 added, 2 changed`."""
        words = (("added", "+"), ("removed", "-"), ("changed", "~"))
        counts = [(sum(one.sign == sign for one in self.groups), word) for word, sign in words]
        return ", ".join(f"{count} {word}" for count, word in counts if count) or ("changed" if self else "no changes")


def review(old: Mapping[str, Any], new: Mapping[str, Any]) -> Review:
    """What must be done to `old` to get `new`."""
    masker = Masker().and_those_of(old).and_those_of(new)
    lines = tuple(_lines(written(masker.value(old)), written(masker.value(new))))
    before, after = decode_value(old).document, decode_value(new).document
    groups: list[Group] = []
    renamed: tuple[tuple[str, str], ...] = ()
    if before is not None and after is not None:
        found = difference(before, after)
        renamed = found.renamed
        groups += [Group("-", masker.text(path)) for path in found.removed]
        groups += [Group("+", masker.text(path)) for path in found.added]
        groups += [
            Group("~", one.path, tuple(masker.text(line.removeprefix(f"{one.path}.")) for line in one.lines))
            for one in found.changed
        ]
    for key in CLOUD_ONLY:
        if old.get(key) != new.get(key):
            groups.append(Group("+" if key not in old else "-" if key not in new else "~", key))
    return Review(tuple(groups), lines, renamed, hidden=not groups and not lines and old != new)


def _lines(old: str, new: str) -> Iterator[Line]:
    if old == new:
        return
    whole = old.splitlines(), new.splitlines()
    first, last = _around(*whole)
    before, after = (one[first : len(one) - last] for one in whole)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=max(len(before), len(after)) > PRECISE)
    for number, group in enumerate(matcher.get_grouped_opcodes(CONTEXT)):
        if number or first or group[0][1] or group[0][3]:
            yield Line("@", None, None, "")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                for offset, text in enumerate(before[i1:i2]):
                    yield Line(" ", first + i1 + offset + 1, first + j1 + offset + 1, text)
                continue
            for offset, text in enumerate(before[i1:i2]):
                yield Line("-", first + i1 + offset + 1, None, text)
            for offset, text in enumerate(after[j1:j2]):
                yield Line("+", None, first + j1 + offset + 1, text)


def _around(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """How many lines at the beginning and at the end are equal and no context of a change: they need no comparison."""
    shorter = min(len(before), len(after))
    first = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    last = next((at for at in range(shorter - first) if before[-1 - at] != after[-1 - at]), shorter - first)
    return max(0, first - CONTEXT), max(0, last - CONTEXT)
