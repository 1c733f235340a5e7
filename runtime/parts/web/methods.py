"""Forms for the methods of an API, derived from its description in `rpc.api`.

The argument `extra`, which every method has but few drivers use, is available only on the command line.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from engine import base_of
from engine.views import Field, Method
from rpc.api import ArgumentInfo, MethodInfo, describe
from schema import API

UNITS: Final[Mapping[str, str]] = {
    "degs_per_sec": "°/s",
    "mm_per_sec": "mm/s",
    "hz": "Hz",
    "deg": "°",
    "degs": "°",
    "mm": "mm",
    "m": "m",
    "ms": "ms",
    "nanoseconds": "ns",
    "seconds": "s",
    "px": "px",
    "pct": "fraction",
    "rpm": "rev/min",
    "revolutions": "rev",
}
"""Units by the last words of an argument's name. The published names contain them."""


@functools.cache
def methods_of(api: API) -> tuple[Method, ...]:
    """Return the methods of an API in alphabetical order; empty for an API that is not published."""
    base = base_of(api)
    if base is None:
        return ()
    offered = [info for info in describe(api, base) if hasattr(base, info.name) and not info.deprecated]
    return tuple(sorted(map(_method, offered), key=lambda method: method.name))


def _method(info: MethodInfo) -> Method:
    doc = " ".join(info.doc.split()).replace("`", "")
    summary, _, detail = doc.partition(". ")
    return Method(
        name=info.name,
        summary=summary if not detail else f"{summary}.",
        detail=detail,
        fields=tuple(
            _field(argument)
            for argument in info.arguments
            if argument.name != "extra" and not argument.type.startswith("stream of ")
        ),
        streaming=info.server_streaming or info.client_streaming,
    )


def _field(info: ArgumentInfo) -> Field:
    control, choices, placeholder = _control(info.schema)
    if not info.required and choices and not _text(info.default):
        choices = ("", *choices)
    unit = next((unit for end, unit in UNITS.items() if f"_{info.name}".endswith(f"_{end}")), "")
    return Field(
        name=info.name,
        control=control,
        optional=not info.required,
        hint="" if choices else unit if unit and control in ("number", "integer") else _short(info.type),
        default=_text(info.default),
        choices=choices,
        placeholder=placeholder,
    )


def _control(schema: Mapping[str, Any]) -> tuple[str, tuple[str, ...], str]:
    """Return how to enter a value of this JSON Schema: kind of control, choices, example."""
    if "enum" in schema:
        return "choice", tuple(schema["enum"]), ""
    kind = schema.get("type", "")
    if kind == "boolean":
        return "choice", ("true", "false"), ""
    if kind == "array" and schema["items"].get("type") in ("string", "number", "integer"):
        return "text", (), "a,b" if schema["items"]["type"] == "string" else "1,2"
    if kind == "array":
        return "json", (), "[ ]"
    if kind in ("object", ""):
        names = list(schema.get("properties", ()))
        return "json", (), "{" + ", ".join(f'"{name}": …' for name in names[:6]) + "}"
    return {"number": "number", "integer": "integer"}.get(kind, "text"), (), ""


def _short(words: str) -> str:
    """Return the description of a type without the fields of messages."""
    return words.partition(" {")[0]


def _text(default: object) -> str:
    if default is None or (isinstance(default, (str, Sequence, Mapping)) and not default):
        return ""
    if isinstance(default, bool):
        return "true" if default else "false"
    return str(default) if isinstance(default, (int, float, str)) else ""
