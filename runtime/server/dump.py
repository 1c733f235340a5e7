"""Writes all registered models, with the JSON Schemas of their attributes, to a file."""

from __future__ import annotations

import ast
import functools
import inspect
import json
import os
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any, get_args

import msgspec

from engine import Registry
from models import BUILTIN
from schema import API, Model, json_schema
from support.files import set_mode


def resources(registry: Registry) -> list[dict[str, Any]]:
    """Return `{"api", "model", "attribute_schema"}` of all models, sorted; models without attributes have no schema."""
    entries = []
    for api, model in sorted(registry.pairs()):
        cls = registry.find(API.parse(api), Model.parse(model))
        entry: dict[str, Any] = {"api": api, "model": model}
        if (schema := described(cls.Config)) is not None:
            entry["attribute_schema"] = schema
        entries.append(entry)
    return entries


def described(config: type[msgspec.Struct]) -> dict[str, Any] | None:
    """Return the JSON Schema of `config` with descriptions from its source, or None if it has no attributes."""
    schema = json_schema(config)
    if schema is None:
        return None
    definitions = schema.get("$defs", {})
    for struct in _structs(config, set()):
        properties = definitions.get(struct.__name__, {}).get("properties", {})
        for name, comment in comments(struct).items():
            if name in properties:
                properties[name] = {"description": comment, **properties[name]}
    return schema


def _structs(kind: Any, seen: set[Any]) -> Iterator[type[msgspec.Struct]]:
    """Yield the structs in a type, including the type itself."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind not in seen:
            seen.add(kind)
            yield kind
            for field in msgspec.structs.fields(kind):
                yield from _structs(field.type, seen)
        return
    for part in get_args(kind):
        yield from _structs(part, seen)


@functools.cache
def comments(config: type[msgspec.Struct]) -> dict[str, str]:
    """Return the comments after the fields, by their keys in documents; empty if there is no source code."""
    by_field: dict[str, str] = {}
    for base in reversed(config.__mro__):
        if issubclass(base, msgspec.Struct) and base is not msgspec.Struct:
            by_field.update(_own_comments(base))
    keys = {field.name: field.encode_name for field in msgspec.structs.fields(config)}
    return {keys[name]: comment for name, comment in by_field.items() if name in keys}


def _own_comments(config: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    try:
        source = dedent(inspect.getsource(config))
    except (OSError, TypeError):
        return
    lines = source.splitlines()
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.ClassDef)
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            after = lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset or 0 :].decode()
            if comment := after.partition("# ")[2].strip():
                yield node.target.id, comment


def dump_resources(path: Path) -> None:
    """Write the built-in models to `path`, mode 0600, indented with tabs; OSError if it cannot be written."""
    text = json.dumps(resources(Registry(BUILTIN)), indent="\t", ensure_ascii=False) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        set_mode(descriptor, 0o600)
        file.write(text)
