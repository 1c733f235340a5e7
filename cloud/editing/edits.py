"""A text as a person wrote it, changed to mean another document: comments, order and spelling stay. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from cloud.editing.comments import without_comments
from cloud.editing.documents import formatted, written
from cloud.editing.merging import same
from cloud.editing.tree import JsonMember, JsonNode, read

UNIT: Final = "  "


class Edit(NamedTuple):
    """A replacement of the characters from `start` to `end`."""

    start: int
    end: int
    text: str


def rewritten(text: str, document: Mapping[str, Any]) -> str:
    """Return `text` with the changes after which it means `document`, or a new text if that is not possible.

    What the two have in common is not touched. New keys come last.
    """
    result = _Writer(text).changed_to(document)
    root = read(without_comments(result))
    return result if root is not None and same(root.value, document) else written(document)


class _Writer:
    def __init__(self, text: str) -> None:
        self._text = text
        self._plain = without_comments(text)
        self._edits: list[Edit] = []

    def changed_to(self, document: Mapping[str, Any]) -> str:
        root = read(self._plain)
        if root is None:
            return ""
        self._value(root, document)
        result = self._text
        for start, end, text in sorted(self._edits, reverse=True):
            result = result[:start] + text + result[end:]
        return result

    # ---- what changes

    def _value(self, node: JsonNode, value: Any) -> None:
        if same(node.value, value):
            return
        if node.kind == "object" and isinstance(value, Mapping) and self._object(node, value):
            return
        if node.kind == "array" and isinstance(value, list) and self._array(node, value):
            return
        self._edits.append(Edit(node.start, node.end, formatted(value, self._indent(node.start))))

    def _object(self, node: JsonNode, value: Mapping[str, Any]) -> bool:
        names = [member.name for member in node.members]
        if len(set(names)) < len(names) or any(member.value is None for member in node.members):
            return False
        self._remove(node, [name not in value for name in names])
        for member in node.members:
            if member.name in value and member.value is not None:
                self._value(member.value, value[member.name])
        self._append(
            node, {name: item for name, item in value.items() if name not in names}, kept=set(names) & set(value)
        )
        return True

    def _array(self, node: JsonNode, value: list[Any]) -> bool:
        pairs = _pairs([item.value for item in node.items], value)
        if pairs is None:
            return False
        self._remove(node, [pair is None for pair in pairs])
        for item, pair in zip(node.items, pairs, strict=True):
            if pair is not None:
                self._value(item, value[pair])
        kept = [pair for pair in pairs if pair is not None]
        self._append(node, value[len(kept) :], kept=kept)
        return True

    # ---- how

    def _append(self, node: JsonNode, added: Mapping[str, Any] | Sequence[Any], kept: Any) -> None:
        if not added:
            return
        parts = _spans(node)
        # the last part that stays; without one, the whole interior is new, after its comments
        staying = [part for part, stays in zip(parts, self._staying(node), strict=True) if stays] if kept else []
        lines = self._in_lines(node, parts)
        indent = self._indent(parts[0][0]) if parts and lines else self._indent(node.start) + UNIT
        inner = indent if lines else ""
        items = (
            [*(f"{formatted(name, '')}: {formatted(item, inner)}" for name, item in added.items())]
            if isinstance(added, Mapping)
            else [formatted(item, inner) for item in added]
        )
        separator = f",\n{indent}" if lines else ", "
        if staying:
            end = staying[-1][1]
            place = self._after_comments(end) if lines else end
            text = separator[1:] + separator.join(items)
            self._edits += (
                [Edit(end, end, "," + text)] if place == end else [Edit(end, end, ","), Edit(place, place, text)]
            )
            return
        close = f"\n{self._indent(node.start)}" if lines else ""
        end = node.end - 1
        start = max(node.start + 1, len(self._text[:end].rstrip()))
        self._edits.append(Edit(start, end, (f"\n{indent}" if lines else "") + separator.join(items) + close))

    def _staying(self, node: JsonNode) -> list[bool]:
        removed = {edit.start for edit in self._edits if not edit.text}
        gone = [any(self._covers(edit_start, span) for edit_start in removed) for span in _spans(node)]
        return [not each for each in gone]

    def _covers(self, start: int, span: tuple[int, int]) -> bool:
        return start <= span[0] and any(edit.start == start and edit.end >= span[1] for edit in self._edits)

    def _remove(self, node: JsonNode, leaving: Sequence[bool]) -> None:
        spans = _spans(node)
        kept = max((index for index, leaves in enumerate(leaving) if not leaves), default=-1)
        for index, (start, end) in enumerate(spans):
            if not leaving[index]:
                continue
            comma = self._comma(end)
            if comma >= 0 and not self._text[end:comma].strip():
                self._erase(start, comma + 1)
            else:
                self._erase(start, end)
                if comma >= 0:
                    self._edits.append(Edit(comma, comma + 1, ""))
        if 0 <= kept < len(spans) - 1 and (comma := self._comma(spans[kept][1])) >= 0:
            self._edits.append(Edit(comma, comma + 1, ""))

    def _erase(self, start: int, end: int) -> None:
        """Remove characters, and their lines if nothing else is in them."""
        line = self._text.rfind("\n", 0, start) + 1
        line_end = self._text.find("\n", end)
        if line_end >= 0 and not (self._text[line:start] + self._text[end:line_end]).strip():
            start, end = line, line_end + 1
        else:
            end += len(self._text[end:]) - len(self._text[end:].lstrip(" \t"))
        self._edits.append(Edit(start, end, ""))

    def _comma(self, end: int) -> int:
        """Return the position of the comma after a value; -1 without one."""
        position = end + len(self._plain[end:]) - len(self._plain[end:].lstrip())
        return position if self._plain.startswith(",", position) else -1

    def _after_comments(self, end: int) -> int:
        """Return the end of the comments behind a value in its line."""
        line_end = self._text.find("\n", end)
        line_end = len(self._text) if line_end < 0 else line_end
        rest = self._plain[end:line_end]
        return end if rest.strip() else end + len(self._text[end:line_end].rstrip())

    def _in_lines(self, node: JsonNode, parts: Sequence[tuple[int, int]]) -> bool:
        if not parts:
            return True
        return not self._text[self._text.rfind("\n", 0, parts[0][0]) + 1 : parts[0][0]].strip()

    def _indent(self, position: int) -> str:
        line = self._text[self._text.rfind("\n", 0, position) + 1 : position]
        return line[: len(line) - len(line.lstrip(" \t"))]


def _spans(node: JsonNode) -> list[tuple[int, int]]:
    if node.kind == "object":
        return [(member.key.start, _end(member)) for member in node.members]
    return [(item.start, item.end) for item in node.items]


def _end(member: JsonMember) -> int:
    return member.key.end if member.value is None else member.value.end


def _pairs(old: list[Any], new: list[Any]) -> list[int | None] | None:
    """Return the index in `new` of each item of `old`, None if it leaves; None unless new items are at the end."""
    names = [_name(item) for item in new]
    used = iter(range(len(new)))
    pairs: list[int | None] = []
    named = None not in names and all(_name(item) is not None for item in old)
    if not named:
        return list(range(len(old))) if len(old) <= len(new) else None
    remaining = set(names)
    for item in old:
        name = _name(item)
        if name not in remaining:
            pairs.append(None)
            continue
        index = next(used, None)
        if index is None or names[index] != name:
            return None
        pairs.append(index)
    return pairs


def _name(item: Any) -> str | None:
    name = (item.get("name") or item.get("id")) if isinstance(item, Mapping) else None
    return name if isinstance(name, str) else None
