"""Check the names in the sources: none is a word that says nothing about what it holds, or house dialect.

A name is anything that a module defines or assigns: a class, function, parameter, attribute, variable or exception. A
word of EMPTY must not be the whole name; a word of DIALECT must not be any part of it, so `set_aside` fails too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.check_sizes import PACKAGES

EMPTY: Final = frozenset({"former", "found", "given", "known", "one", "wanted"})
DIALECT: Final = frozenset({"anew", "aside", "beside", "entrance", "thereof", "told", "whoever"})
FOLDERS: Final = (*PACKAGES, "bench", "tools", "examples")

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def bound_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of each name that a module binds."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.alias(asname=str(name)):
                yield node.lineno, name


def is_bad(name: str) -> bool:
    """Return whether a name is a word of EMPTY or contains a word of DIALECT."""
    words = [word.lower() for word in _WORD.findall(name)]
    return (len(words) == 1 and words[0] in EMPTY) or not DIALECT.isdisjoint(words)


def problems(path: Path) -> Iterator[str]:
    """Yield every bad name that a module binds."""
    for line, name in bound_names(ast.parse(path.read_text("utf-8"))):
        if is_bad(name):
            yield f"{path}:{line}: name `{name}` by what it is or holds"


def main() -> int:
    """Print every violation; return 1 if there is one."""
    paths = [path for folder in FOLDERS for path in sorted(Path(folder).rglob("*.py"))]
    lines = [problem for path in paths for problem in problems(path)]
    print("\n".join(lines))
    return int(bool(lines))


if __name__ == "__main__":
    raise SystemExit(main())
