"""Configurations as people read and make them: written out, listed, with one more resource. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any, Final

from cloud.editing.catalogue import Catalogue, ModelEntry, resolved
from cloud.editing.completion import skeleton
from cloud.editing.tree import Lines, Node, at, place, read
from schema.errors import ErrorKind, MachineError
from schema.names import check_name

WIDTH: Final = 88  # characters of a list of plain values that stands in one line
LISTED: Final = ("components", "services", "modules", "remotes", "packages", "jobs", "fragments", "triggers")


_encode: Final = json.JSONEncoder(ensure_ascii=False).encode


def written(document: Any) -> str:
    """Format a document as JSON for people, in its own order. A list of plain values takes one line if it fits."""
    return _written(document, "") + "\n"


def _written(value: Any, indent: str) -> str:
    inner = f"{indent}  "
    if isinstance(value, Mapping) and value:
        lines = [f"{inner}{_plain(str(key))}: {_written(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list | tuple) and value:
        if any(isinstance(item, Mapping | list | tuple) for item in value):
            items = [_written(item, inner) for item in value]
        else:
            items = list(map(_plain, value))
            line = f"[{', '.join(items)}]"
            if len(indent) + len(line) <= WIDTH:
                return line
        return "[\n" + ",\n".join([inner + item for item in items]) + f"\n{indent}]"
    return _plain(value)


def _plain(value: Any) -> str:
    # A document has up to a hundred thousand values: json.dumps takes 20 times as long for a short text.
    kind = type(value)
    return encode_basestring(value) if kind is str else str(value) if kind is int else _encode(value)


# ---- the outline


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a section. `start` is where it begins in the text."""

    section: str
    name: str
    kind: str  # the last word of its API, its version
    model: str
    path: str
    line: int
    start: int


def outline(text: str) -> list[Item]:
    """What a text configures, as far as it can be read."""
    root = read(text)
    return list(_items(root, text)) if root is not None else []


def _items(root: Node, text: str) -> Iterator[Item]:
    lines = Lines(text)
    for section in LISTED:
        found = at(root, (section,))
        for index, node in enumerate(found.items if found is not None else ()):
            value = node.value
            path = f"{section}.{index}"
            start = place(root, path)[0]
            line = lines.position(start)[0]
            if isinstance(value, Mapping):
                words = {key: one for key, one in value.items() if isinstance(one, str)}
                name = words.get("name") or words.get("id") or ("builtin" if section == "services" else "")
                kind = words.get("api", "").rpartition(":")[2] or words.get("type", "")
                yield Item(section, name, kind, words.get("model", ""), path, line, start)
            elif isinstance(value, str):
                yield Item(section, value, "", "", path, line, start)


# ---- one more resource


def with_resource(document: Mapping[str, Any], entry: ModelEntry, name: str) -> dict[str, Any]:
    """A copy of `document` with one more resource, its required attributes to be filled in.

    INVALID if the name cannot be one, EXISTS if it is taken.
    """
    check_name(name, path="name")
    section = document.get(entry.section)
    others = section if isinstance(section, list) else []
    if any(isinstance(one, Mapping) and one.get("name") == name for one in others):
        raise MachineError(f"there is a resource called {name!r}", kind=ErrorKind.EXISTS, remedy="choose another name")
    made = {"name": name, "api": entry.api, "model": entry.word, "attributes": required(entry)}
    return {**document, entry.section: [*others, made]}


def required(entry: ModelEntry) -> dict[str, Any]:
    """The attributes without which the model does not work, each with a value to start from."""
    if entry.schema is None:
        return {}
    schema = resolved(entry.schema)
    properties = schema.get("properties", {})
    return {
        key: json.loads(skeleton(resolved(properties.get(key, {}), entry.schema))) for key in schema.get("required", ())
    }


def model_named(catalogue: Catalogue, text: str) -> ModelEntry:
    """The model that `API MODEL` names; INVALID if there is none."""
    api, _, model = text.partition(" ")
    found = catalogue.find(api, model)
    if found is None:
        raise MachineError(f"there is no model {text!r}", kind=ErrorKind.INVALID, remedy="choose one of the list")
    return found
