"""Write docs/reference/configuration.md from the types of the machine document."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from schema.document.machine import MachineDocument
from schema.document.section import Section
from schema.durations import format_duration

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "configuration.md"
TEXT = Path(__file__).with_name("config_reference.md")
MARKER = re.compile(r"<!-- table: (.+) -->")
SKIPPED = {"broken"}  # fields of the decoded form, not of the document


def page() -> str:
    """Return the page: TEXT with each `<!-- table: Class, ... -->` replaced by the tables of these classes."""
    classes: dict[str, type[Any]] = {cls.__name__: cls for cls in (MachineDocument, *sections())}

    def tables(marker: re.Match[str]) -> str:
        names = marker[1].split(", ")
        return "\n\n".join(table(classes[name], named=number > 0) for number, name in enumerate(names))

    return MARKER.sub(tables, TEXT.read_text())


def sections() -> list[type[Section]]:
    """Return the classes of which the document consists, except MachineDocument and ResourceEntry."""
    package = MachineDocument.__module__.rpartition(".")[0]  # other packages have Sections of their own
    return [cls for cls in Section.__subclasses__() if cls.__module__.startswith(f"{package}.")]


def table(cls: type[Any], *, named: bool) -> str:
    """Return a Markdown table with key, type, default and meaning of each field of `cls`."""
    meanings, hints = meanings_of(cls), get_type_hints(cls, include_extras=True)
    head = [f"**{cls.__name__}**: {inspect.getdoc(cls)}\n"] if named else []
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for name, key, default in _fields(cls):
        if name not in SKIPPED:
            cells = (f"`{key}`", _type(hints[name]), _default(default, hints[name]), meanings[name])
            rows.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
    return "\n".join(head + rows)


def _fields(cls: type[Any]) -> list[tuple[str, str, Any]]:
    if issubclass(cls, msgspec.Struct):
        fields = msgspec.structs.fields(cls)
        return [(field.name, field.encode_name, "required" if field.required else field.default) for field in fields]
    defaults = cls()
    return [(name, name, getattr(defaults, name)) for name in inspect.signature(cls).parameters]


def meanings_of(cls: type[Any]) -> dict[str, str]:
    """Return the docstring after each field."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(body, ast.ClassDef)
    meanings = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            meanings[field.target.id] = " ".join(str(ast.literal_eval(text.value)).split())
    return meanings


_WORDS = {"str": "text", "bool": "true or false", "int": "whole number", "float": "number"}


def _type(hint: Any) -> str:
    text = str(hint)
    if "duration" in text:
        return "duration"
    if "Literal" in text:
        return "one of " + ", ".join(f"`{word}`" for word in hint.__args__ if word)
    if "int" in text.partition("[")[2] and "Meta" in text:
        return "whole number"
    for start, word in (("tuple", "list"), ("dict", "object"), ("collections.abc.Mapping", "object")):
        if text.startswith((start, f"typing.{start}")):
            return word
    name = getattr(hint, "__name__", text)
    return _WORDS.get(name, "object")


def _default(value: Any, hint: Any) -> str:
    if value == "required":
        return "**required**"
    if (
        value is msgspec.NODEFAULT
        or value is None
        or value in ("", (), {})
        or not isinstance(value, (bool, int, float, str))
    ):
        return ""
    if "duration" in str(hint):
        return f"`{format_duration(value)}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
