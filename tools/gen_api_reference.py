"""Write docs/reference/apis.md from the published API and the docstrings of the base classes."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "apis.md"
COMMON = ("do_command", "get_status", "get_geometries")

HEAD = """\
# APIs of resources

<!-- Written by tools/gen_api_reference.py; `make generate` brings it up to date. -->

Each API is a Python base class and a published protobuf service. A driver derives from the class and implements the
methods that it supports; the others return UNIMPLEMENTED. Methods are coroutines, except those that return a stream,
which are async generators. `extra` is an optional mapping that the driver defines; it is keyword-only and left out of
the tables. A method marked ● moves something: the movement belongs to the caller's session, and the resource is stopped
when that session expires.

Every resource has `do_command(command)`, with commands that the driver defines, and `get_status()`, a summary for
people. Most components also have `get_geometries()`: their shapes in their own frame (mm).

Numbers in free-form values (readings, commands, `extra`) are doubles on the wire: an `int` arrives as a `float`. Bytes
in them arrive as base64 text, times as RFC 3339 text.
"""


def page() -> str:
    """Return the text of the page."""
    from engine.apis import BASES
    from rpc.api.table import APIS

    parts = [HEAD]
    for api in BASES:
        parts += _section(api, APIS[api].service)
    return "\n".join(parts)


def _section(api: Any, service: str) -> Iterator[str]:
    import engine
    from engine.apis import base_of
    from rpc.api.descriptions import describe

    base = base_of(api)
    assert base is not None
    yield f"## {api.subtype}{' (service)' if api.type == 'service' else ''}\n"
    yield f"{_paragraph(base.__doc__)}\n"
    assert base.__name__ in engine.__all__, f"add {base.__name__} to the door of engine"
    yield f"`from engine import {base.__name__}` · `{api}` · `{service}`\n"
    methods = [info for info in describe(api, base) if info.name not in COMMON]
    if methods:
        yield "| method | returns | contract |\n|---|---|---|"
    for info in methods:
        hints = typing.get_type_hints(getattr(base, info.name))
        listed = ", ".join(_argument(a, hints[a.name]) for a in info.arguments if a.name != "extra")
        mark = " ●" if info.monitored else ""
        yield f"| `{info.name}({listed})`{mark} | {_returns(info, base)} | {_paragraph(info.doc)} |"
    yield ""
    classes = list(_classes(base, [info.name for info in methods]))
    if classes:
        yield "| value | what it is | fields |\n|---|---|---|"
    for cls in classes:
        yield f"| `{cls.__name__}` | {_paragraph(cls.__doc__)} | {_fields(cls)} |"
    if classes:
        yield ""


def _argument(argument: Any, hint: Any) -> str:
    text = f"{argument.name}: {_type(hint)}"
    return text if argument.required else f"{text} = {argument.default!r}"


def _returns(info: Any, base: type) -> str:
    hint = typing.get_type_hints(getattr(base, info.name)).get("return")
    return f"`{_type(hint)}`" if hint not in (None, type(None)) else ""


def _type(hint: Any) -> str:
    """Return a type in readable form."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return "Any"
    if hint is type(None):
        return "None"
    if isinstance(hint, typing.ForwardRef) or hint == "Value":
        return "Value"
    if origin is None:
        return getattr(hint, "__name__", str(hint))
    name = getattr(origin, "__name__", str(origin))
    if name in ("UnionType", "Union"):
        texts = [_type(a) for a in arguments]
        return "Value" if len(texts) > 4 else " \\| ".join(texts)
    if name == "AsyncGenerator":
        return f"stream of {_type(arguments[0])}"
    if name in ("AsyncIterator", "AsyncIterable"):
        return f"AsyncIterator[{_type(arguments[0])}]"
    return f"{name}[{', '.join(_type(a) for a in arguments)}]"


def _classes(base: type, methods: list[str]) -> Iterator[type]:
    """Return the dataclasses and enums in the signatures of these methods, each once, in order of appearance."""
    found_classes: dict[type, None] = {}

    def visit(hint: Any) -> None:
        for argument in typing.get_args(hint):
            visit(argument)
        if (
            not isinstance(hint, type)
            or hint in found_classes
            or not hint.__module__.startswith(("runtime.", "schema.space.geometry"))
        ):
            return
        found_classes[hint] = None
        if dataclasses.is_dataclass(hint):
            for inner in typing.get_type_hints(hint).values():
                visit(inner)

    for name in methods:
        for hint in typing.get_type_hints(getattr(base, name)).values():
            visit(hint)
    return iter(found_classes)


def _fields(cls: type) -> str:
    if issubclass(cls, enum.Enum):
        return ", ".join(f"`{member.name}` {member.value}" for member in cls)
    hints = typing.get_type_hints(cls)
    return ", ".join(f"`{name}: {_type(hints[name])}`" for name in hints)


def _paragraph(doc: str | None) -> str:
    return " ".join(inspect.cleandoc(doc or "").split()).replace("|", "\\|")
