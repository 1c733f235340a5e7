"""The list of all regular expressions in the product's packages, read from their sources."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[3]
_ANYWHERE: Final = frozenset({"search", "sub", "subn", "split", "findall", "finditer"})
_FROM_THE_START: Final = frozenset({"match", "fullmatch"})


@dataclass(frozen=True, slots=True)
class Expression:
    """A use of the module re: where it is, and the compiled expression if its text is constant."""

    place: str  # package.module:NAME, or package.module:text of the expression
    pattern: re.Pattern[Any] | None
    anywhere: bool  # searched for at each position, instead of only at the first


def packages() -> list[str]:
    """Return the names of the product's packages."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    names: list[str] = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    return names


def expressions() -> Iterator[Expression]:
    """Yield every regular expression in the sources of the product's packages."""
    for package in packages():
        for file in sorted((ROOT / package).rglob("*.py")):
            text = file.read_text()
            if "re." in text:
                yield from _of_module(file, text)


def _of_module(file: Path, text: str) -> Iterator[Expression]:
    module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    tree = ast.parse(text)
    named = {id(node.value): _target(node) for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AnnAssign)}
    top = {id(node.value) for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)}
    for node in ast.walk(tree):
        call = _call_of_re(node)
        if call is None:
            continue
        assert isinstance(node, ast.Call)
        # `re.compile(...).match` is a name for the method of the expression
        name = named.get(id(node), "")
        if call == "compile" and id(node) in top:
            value = getattr(importlib.import_module(module), name)
            used = (_ANYWHERE | _FROM_THE_START) & set(re.findall(rf"\b{name}\.(\w+)", text))
            yield Expression(f"{module}:{name}", value, not used or bool(used & _ANYWHERE))
        else:
            yield _inline(module, call, node)


def _inline(module: str, call: str, node: ast.Call) -> Expression:
    source = ast.unparse(node.args[0])
    try:
        constant = ast.literal_eval(node.args[0])
    except ValueError:
        return Expression(f"{module}:{source}", None, anywhere=True)
    return Expression(f"{module}:{source}", re.compile(constant), call not in _FROM_THE_START)


def _call_of_re(node: ast.AST) -> str | None:
    """Return the name of the function of re that a node calls; None if it calls none."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    function = node.func
    if not isinstance(function.value, ast.Name) or function.value.id != "re":
        return None
    return function.attr if function.attr in _ANYWHERE | _FROM_THE_START | {"compile"} else None


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
    return target.id if isinstance(target, ast.Name) else ""
