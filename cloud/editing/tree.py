"""Tolerant parser of JSON text, complete or not, into a tree with positions. Pure; never raises.

While a user types, the text is rarely valid JSON. Unreadable parts are skipped, missing parts are left out, and every
node has its start and end as offsets in characters.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from cloud.documents.paths import index_of

DEPTH: Final = 200  # deeper nesting is not parsed

_TOKEN: Final = re.compile(r'\s+|["{}\[\]:,]|[^\s{}\[\]:,"]+')
_INSIDE: Final = re.compile(r'(?:[^"\\\n]++|\\[^\n]){1,1000}+')  # part of a string; limited so that threads take turns


@dataclass(slots=True)
class JsonNode:
    """A value. `kind` is object, array, string or word; `end` is the offset after its last character."""

    kind: str
    start: int
    end: int
    text: str = ""
    closed: bool = True
    members: list[JsonMember] = field(default_factory=list)
    items: list[JsonNode] = field(default_factory=list)

    @property
    def value(self) -> Any:
        """The decoded value: later members win; an invalid word is None."""
        if self.kind == "object":
            return {member.name: member.value.value if member.value else None for member in self.members}
        if self.kind == "array":
            return [member.value for member in self.items]
        try:
            return json.loads(self.text if self.closed else f'{self.text}"')
        except (ValueError, RecursionError):
            return None

    def get(self, name: str) -> JsonNode | None:
        """Return the value of a member of an object."""
        return next((member.value for member in reversed(self.members) if member.name == name), None)


@dataclass(slots=True)
class JsonMember:
    """`"name": value` of an object; the colon or the value may still be missing."""

    key: JsonNode
    colon: int = -1
    value: JsonNode | None = None

    @property
    def name(self) -> str:
        """The key as text."""
        value = self.key.value
        return value if isinstance(value, str) else self.key.text


@dataclass(frozen=True, slots=True)
class Spot:
    """The cursor's position, in a key or value or where one fits. A completion replaces `start` to `end`."""

    path: tuple[str, ...]  # path of the object that has the key, or of the value
    key: bool
    start: int
    end: int
    typed: str  # text before the cursor, without the quote
    member: str = ""  # name of the key at the cursor
    comma_before: bool = False  # a comma is missing before the insertion
    comma_after: bool = False  # a comma is missing after it


def tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield all tokens except white space, with start and end."""
    end = 0
    while (match := _TOKEN.match(text, end)) is not None:
        start, end = match.span()
        if text[start] == '"':
            while (inside := _INSIDE.match(text, end)) is not None:
                end = inside.end()
            end += text.startswith('"', end)
        if not text[start].isspace():
            yield text[start:end], start, end


def read(text: str) -> JsonNode | None:
    """Parse the first value of the text; None if there is none."""
    root: JsonNode | None = None
    stack: list[JsonNode] = []
    for token, start, end in tokens(text):
        if root is not None and not stack:
            break
        if token in "}]":
            _close(stack, "object" if token == "}" else "array", end)
            continue
        if token == ":":
            if stack and stack[-1].kind == "object" and stack[-1].members and stack[-1].members[-1].colon < 0:
                stack[-1].members[-1].colon = start
            continue
        if token == ",":
            continue
        node = _node(token, start, end)
        if not stack:
            root = node
        elif stack[-1].kind == "array":
            stack[-1].items.append(node)
        elif not _member(stack[-1], node):
            continue
        if node.kind in ("object", "array"):
            if len(stack) >= DEPTH:
                return root
            stack.append(node)
    for open_node in stack:
        open_node.end, open_node.closed = len(text), False
    return root


def _node(token: str, start: int, end: int) -> JsonNode:
    kind = {"{": "object", "[": "array", '"': "string"}.get(token[0], "word")
    closed = kind != "string" or (len(token) > 1 and token.endswith('"') and _ends(token))
    return JsonNode(kind, start, end, token, closed)


def _ends(token: str) -> bool:
    """Return whether the last quote of a string token is not escaped."""
    body = token[1:-1]
    return (len(body) - len(body.rstrip("\\"))) % 2 == 0


def _member(parent: JsonNode, node: JsonNode) -> bool:
    """Add a key or a value to an object; False if it does not fit there."""
    last = parent.members[-1] if parent.members else None
    if last is not None and last.colon >= 0 and last.value is None:
        last.value = node
        return True
    if node.kind in ("string", "word"):
        parent.members.append(JsonMember(node))
        return True
    return False


def _close(stack: list[JsonNode], kind: str, end: int) -> None:
    """Close the innermost open value of a kind and everything left open inside it."""
    for index in range(len(stack) - 1, -1, -1):
        if stack[index].kind == kind:
            for open_node in stack[index + 1 :]:
                open_node.end, open_node.closed = end - 1, False
            stack[index].end = end
            del stack[index:]
            return


# ---- positions of paths


def span_of(root: JsonNode, path: str) -> tuple[int, int]:
    """Return start and end of the value at a dotted path, or the beginning of its nearest existing parent."""
    node, remaining = root, path
    while remaining:
        if node.kind == "object":
            member = next((member for member in reversed(node.members) if _begins(remaining, member.name)), None)
            if member is None:
                return node.start, node.start + 1
            if member.value is None:
                return member.key.start, member.key.end
            remaining = remaining[len(member.name) + 1 :]
            if not remaining and member.value.kind in ("object", "array"):
                return member.key.start, member.key.end
            node = member.value
        elif node.kind == "array":
            head, _, tail = remaining.partition(".")
            if (index := index_of(head)) is None or index >= len(node.items):
                return node.start, node.start + 1
            node, remaining = node.items[index], tail
        else:
            break
    return (node.start, node.start + 1) if node.kind in ("object", "array") else (node.start, node.end)


def _begins(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name}.")


def at(root: JsonNode | None, path: tuple[str, ...]) -> JsonNode | None:
    """Return the node at a path; None if it does not exist."""
    node = root
    for word in path:
        if node is None:
            return None
        if node.kind == "object":
            node = node.get(word)
        elif node.kind == "array" and (index := index_of(word)) is not None and index < len(node.items):
            node = node.items[index]
        else:
            return None
    return node


class Lines:
    """Offsets of the lines of a text, computed once for many positions."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(line_end.end() for line_end in re.finditer("\n", text))]

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset, both counted from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


# ---- the position of the cursor


def spot(text: str, root: JsonNode | None, cursor: int) -> Spot | None:
    """Return the position of the cursor; None where nothing can be completed."""
    if root is None or root.kind not in ("object", "array"):
        return None
    node, path = root, list[str]()
    while True:
        inner = _inside(node, cursor)
        if inner is None:
            return _between(text, node, tuple(path), cursor)
        name, child, is_key = inner
        if is_key:
            return _within(text, node, child, tuple(path), cursor, member=name)
        path.append(name)
        if child.kind not in ("object", "array"):
            return _within(text, node, child, tuple(path), cursor)
        node = child


def _within(
    text: str, parent: JsonNode, token: JsonNode, path: tuple[str, ...], cursor: int, *, member: str | None = None
) -> Spot:
    """Describe a cursor in a partial key (`member` is its name) or value; commas may be missing on either side."""
    before = text[parent.start : token.start].rstrip()[-1:]
    after = text[token.end : parent.end].lstrip()[:1]
    return Spot(
        path,
        member is not None,
        token.start,
        token.end,
        text[token.start : cursor].lstrip('"'),
        member=member or "",
        comma_before=before not in "{[:,",
        comma_after=after not in ("", ",", "]", "}", ":"),
    )


def _inside(node: JsonNode, cursor: int) -> tuple[str, JsonNode, bool] | None:
    """Return the key or value of `node` at or directly before the cursor: name, node, and whether it is a key."""
    if node.kind == "array":
        for index, item in enumerate(node.items):
            if _touches(item, cursor):
                return str(index), item, False
        return None
    for member in node.members:
        if _touches(member.key, cursor):
            return member.name, member.key, True
        if member.value is not None and _touches(member.value, cursor):
            return member.name, member.value, False
    return None


def _touches(node: JsonNode, cursor: int) -> bool:
    if node.kind in ("object", "array"):
        return node.start < cursor < node.end or (not node.closed and node.start < cursor <= node.end)
    if node.kind == "string" and node.closed:
        return node.start < cursor < node.end
    return node.start < cursor <= node.end


def _between(text: str, node: JsonNode, path: tuple[str, ...], cursor: int) -> Spot | None:
    """Describe a cursor in an object or array but outside its members and items."""
    before = text[node.start : cursor].rstrip()[-1:]
    comma_after = text[cursor : node.end].lstrip()[:1] not in ("", ",", "]", "}")
    if node.kind == "array":
        here = (*path, str(_count(node, cursor)))
        return Spot(here, False, cursor, cursor, "", comma_before=before not in "[,", comma_after=comma_after)
    previous = next((member for member in reversed(node.members) if member.key.end <= cursor), None)
    if (
        previous is not None
        and 0 <= previous.colon < cursor
        and (previous.value is None or previous.value.start >= cursor)
    ):
        return Spot((*path, previous.name), False, cursor, cursor, "")
    if previous is not None and previous.colon < 0:
        return None  # a colon is expected
    return Spot(path, True, cursor, cursor, "", comma_before=before not in "{,", comma_after=comma_after)


def _count(node: JsonNode, cursor: int) -> int:
    return sum(item.end <= cursor for item in node.items)
