"""Write docs/reference/models.md from the table of built-in models and their configuration classes."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "models.md"
HEAD = """# Built-in models

<!-- Written by tools/gen_model_reference.py; change the configuration classes instead. -->

A resource names its API and one of these models. A model of one word means `rdk:builtin:<word>`. Attributes without a
default are required; unknown attributes are accepted with a warning. Models named `fake` are parts of one simulated
machine: for example, the encoder counts when the motor turns.
"""


def page() -> str:
    """Return the text of the page."""
    from models import BUILTIN

    parts = [HEAD]
    heading = ""
    for (api, model), path in sorted(BUILTIN.items()):
        if api != heading:
            heading = api
            parts.append(f"\n## `{api}`\n")
        module, _, name = path.partition(":")
        parts.append(_model(model, getattr(importlib.import_module(module), name)))
    return "".join(parts)


def _model(model: str, cls: Any) -> str:
    module_doc = inspect.getdoc(inspect.getmodule(cls)) or ""
    lines = [f"\n### `{model.rpartition(':')[2]}`\n", module_doc.partition("\n\n")[0].replace("\n", " ")]
    lines.append((inspect.getdoc(cls) or "").replace("\n", " "))
    rows = _rows(cls.Config, "")
    if rows:
        lines += ["", "| attribute | type | default | meaning |", "|---|---|---|---|", *rows]
    else:
        lines += ["", "No attributes."]
    lines += _other_keys(cls.Config)
    lines += _page(cls)
    return "\n".join(lines) + "\n"


def _page(cls: type) -> list[str]:
    """Return the text of `page.md` in the folder of the model, without the rows of tables on other pages."""
    path = Path(inspect.getfile(cls)).with_name("page.md")
    if not path.exists():
        return []
    text = "\n".join(line for line in path.read_text("utf-8").splitlines() if not line.startswith("|"))
    return ["", text.strip()]


def _other_keys(config: Any) -> list[str]:
    """Describe the reference's keys that have another name here or are rejected."""
    names = [f"`{key}` is another name of `{other}`." for key, other in config.OTHER_NAMES.items()]
    missing = [f"`{key}` is refused: {feature} is not built." for key, feature in config.NOT_BUILT.items()]
    return ["", " ".join([*names, *missing])] if names or missing else []


def _rows(config: type[msgspec.Struct], prefix: str) -> list[str]:
    comments = _comments(config)
    rows = []
    for field in msgspec.structs.fields(config):
        annotation, meaning = comments[field.name]
        if annotation.isidentifier() and get_origin(field.type) is Literal:  # a type alias for a Literal
            annotation = " or ".join(f"'{word}'" for word in get_args(field.type))
        if field.required:
            default = "required"
        else:
            value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
            default = f"`{msgspec.json.encode(value).decode()}`"
        rows.append(f"| `{prefix}{field.encode_name}` | {_cell(annotation)} | {_cell(default)} | {_cell(meaning)} |")
        for nested in _structs(field.type):
            rows += _rows(nested, f"{prefix}{field.encode_name}{'[]' if 'tuple' in annotation else ''}.")
    return rows


def _structs(kind: Any) -> list[type[msgspec.Struct]]:
    """Return the structs that a type contains."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    return [struct for part in getattr(kind, "__args__", ()) for struct in _structs(part)]


def _comments(config: type[msgspec.Struct]) -> dict[str, tuple[str, str]]:
    """Return the type and comment of each field, as written in the class or its bases."""
    comments = {}
    for base in reversed(config.__mro__):
        if issubclass(base, msgspec.Struct) and base is not msgspec.Struct:
            comments |= _own_comments(base)
    return comments


def _own_comments(config: type[msgspec.Struct]) -> dict[str, tuple[str, str]]:
    source = inspect.getsource(config)
    lines = source.splitlines()
    body = ast.parse(source).body[0]
    assert isinstance(body, ast.ClassDef)
    comments = {}
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            line = lines[(node.end_lineno or node.lineno) - 1]
            comment = line[node.end_col_offset or 0 :].partition("# ")[2].strip()
            if "ClassVar" in ast.unparse(node.annotation):
                continue
            if not comment:
                raise SystemExit(f"{config.__module__}.{config.__name__}.{node.target.id} has no comment")
            comments[node.target.id] = _type(node.annotation), comment
    return comments


_WORDS = {"str": "text", "int": "whole number", "float": "number", "bool": "true or false", "Any": "anything"}


def _type(node: ast.expr) -> str:
    """Describe a Python annotation in words."""
    match node:
        case ast.Name(id=name):
            return _WORDS.get(name, name)
        case ast.Constant(value=None):
            return "null"
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            words = [word for word in (_type(left), _type(right)) if word != "null"]
            return " or ".join(words)
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=elements)):
            return _type(elements[0])
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=elements)):
            return f"list (tuple) of {_type(elements[0])}"
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=elements)):
            return f"object of {_type(elements[1])}"
        case ast.Subscript(value=ast.Name(id="Literal"), slice=ast.Tuple(elts=elements)):
            return " or ".join(ast.unparse(element) for element in elements)
        case _:
            return ast.unparse(node)


def _cell(text: str) -> str:
    return text.replace("list (tuple) of", "list of").replace("|", "\\|")
