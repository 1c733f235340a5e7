"""Configurations for people: formatted text, an outline, and a document with an added resource. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any, Final

from cloud.editing.catalogue import Catalogue, ModelEntry, resolved
from cloud.editing.comments import without_comments
from cloud.editing.completion import skeleton
from cloud.editing.tree import JsonNode, Lines, at, read, span_of
from schema import ErrorKind, MachineError, check_name

WIDTH: Final = 88  # maximum line length of a list of plain values on one line
LISTED: Final = ("components", "services", "modules", "remotes", "packages", "jobs", "fragments", "triggers")


_encode: Final = json.JSONEncoder(ensure_ascii=False).encode


def written(document: Any) -> str:
    """Format a document as JSON for people, keeping its order. A list of plain values takes one line if it fits."""
    return _written(document, "") + "\n"


def formatted(value: Any, indent: str) -> str:
    """Format a value as `written` does, with `indent` before all lines except the first."""
    return _written(value, indent)


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
class DocumentEntry:
    """An entry of a section. `start` is its offset in the text."""

    section: str
    name: str
    kind: str  # the last part of its API, or its type
    model: str
    path: str
    line: int
    start: int


def outline(text: str) -> list[DocumentEntry]:
    """Return the entries that a text configures, as far as it can be parsed."""
    root = read(without_comments(text))
    return list(_items(root, text)) if root is not None else []


def _items(root: JsonNode, text: str) -> Iterator[DocumentEntry]:
    lines = Lines(text)
    for section in LISTED:
        section_node = at(root, (section,))
        for index, node in enumerate(section_node.items if section_node is not None else ()):
            value = node.value
            path = f"{section}.{index}"
            start = span_of(root, path)[0]
            line = lines.position(start)[0]
            if isinstance(value, Mapping):
                texts = {key: text_value for key, text_value in value.items() if isinstance(text_value, str)}
                name = texts.get("name") or texts.get("id") or ("builtin" if section == "services" else "")
                kind = texts.get("api", "").rpartition(":")[2] or texts.get("type", "")
                yield DocumentEntry(section, name, kind, texts.get("model", ""), path, line, start)
            elif isinstance(value, str):
                yield DocumentEntry(section, value, "", "", path, line, start)


# ---- one more resource


def with_resource(document: Mapping[str, Any], entry: ModelEntry, name: str) -> dict[str, Any]:
    """Return a copy of `document` with another resource, with placeholders for its required attributes.

    INVALID if `name` is not a valid name, EXISTS if it is in use.
    """
    check_name(name, path="name")
    section = document.get(entry.section)
    others = section if isinstance(section, list) else []
    if any(isinstance(resource, Mapping) and resource.get("name") == name for resource in others):
        raise MachineError(
            f"there is already a resource called {name!r}", kind=ErrorKind.EXISTS, remedy="choose another name"
        )
    added = {"name": name, "api": entry.api, "model": entry.word, "attributes": required(entry)}
    return {**document, entry.section: [*others, added]}


def required(entry: ModelEntry) -> dict[str, Any]:
    """Return the required attributes of a model, each with a placeholder value."""
    if entry.schema is None:
        return {}
    schema = resolved(entry.schema)
    properties = schema.get("properties", {})
    return {
        key: json.loads(skeleton(resolved(properties.get(key, {}), entry.schema))) for key in schema.get("required", ())
    }


def model_named(catalogue: Catalogue, text: str) -> ModelEntry:
    """Return the model that the text `API MODEL` names; INVALID if it does not exist."""
    api, _, model = text.partition(" ")
    entry = catalogue.find(api, model)
    if entry is None:
        raise MachineError(f"there is no model {text!r}", kind=ErrorKind.INVALID, remedy="choose a model from the list")
    return entry
