"""Check the names in the sources: none is a word that says nothing about what it holds, or house dialect.

A name is anything that a module defines or assigns: a class, function, parameter, attribute, variable or exception. A
word of EMPTY must not be the whole name; a word of DIALECT must not be any part of it, so `set_aside` fails too.

A public class name stands for one thing in a package at the root, and in the doors of all packages. SAYS_WHOSE are the
exceptions.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Final

from tools.check_layout import module_of
from tools.check_sizes import PACKAGES
from tools.gen_doors import doors

EMPTY: Final = frozenset({"former", "found", "given", "known", "one", "wanted"})
DIALECT: Final = frozenset({"anew", "aside", "beside", "entrance", "thereof", "told", "whoever"})
FOLDERS: Final = (*PACKAGES, "bench", "tools", "examples")

TESTS: Final = "tests"
NOT_RENAMED: Final = ("tests/hil", "tests/e2e/agent", "tests/sim/agent", "tests/unit/agent")
"""Folders of tests in which only the names of tests are checked. Remove a folder once its names have been changed."""
POETRY: Final = re.compile(
    r"^test_(?:what|who)_|_(?:anybody|everybody|nobody|somebody|who|whoever|whom)(?:_|$)"
    r"|(?<!_there)_(?:is|are)_(?:no|said|tried_again)(?!_(?:longer|more))(?:_|$)"
)
"""Names of tests that have to be read twice: `test_what_was_deleted_is_gone` for `test_deleted_blobs_are_gone`."""

SAYS_WHOSE: Final = re.compile(r"models/|.*messages\.py")
"""Paths that say whose a class is: folders of models, and modules of messages, whose names are those of the wire."""

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


def is_poetic(name: str) -> bool:
    """Return whether the name of a test is POETRY or contains a word of DIALECT."""
    return name.startswith("test_") and (POETRY.search(name) is not None or not DIALECT.isdisjoint(name.split("_")))


def test_problems(path: Path) -> Iterator[str]:
    """Yield every poetic name of a test in a module."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_poetic(node.name):
            yield f"{path}:{node.lineno}: name `{node.name}` by what happens"


def classes(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the paths of the modules that define each public class, without those of SAYS_WHOSE, by its name."""
    paths: dict[str, list[str]] = defaultdict(list)
    for path, text in sorted(sources.items()):
        if SAYS_WHOSE.match(path):
            continue
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                paths[node.name].append(path)
    return paths


def ambiguous_classes(sources: Mapping[str, str], exports: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Yield each class name with two meanings; `exports` are the names in doors, by the module that defines them."""
    for name, paths in sorted(classes(sources).items()):
        for _, here in groupby(paths, key=lambda path: path.partition("/")[0]):
            places = list(here)
            if len(places) > 1:
                yield f"{places[0]}: class `{name}` is also in {', '.join(places[1:])}: say whose it is"
        public = [path for path in paths if name in exports.get(module_of(path), ())]
        if len({path.partition("/")[0] for path in public}) > 1:
            yield f"{public[0]}: class `{name}` is also public in {', '.join(public[1:])}: say whose it is"


def _ambiguous() -> Iterator[str]:
    sources = {str(path): path.read_text("utf-8") for path in _modules(PACKAGES)}
    exports: dict[str, set[str]] = defaultdict(set)
    for door in doors():
        for module, names in door.names.items():
            exports[module].update(names)
    yield from ambiguous_classes(sources, exports)


def _modules(folders: Iterable[str]) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(Path(folder).rglob("*.py"))


def _is_renamed(path: Path) -> bool:
    return not any(path.is_relative_to(folder) for folder in NOT_RENAMED)


def main() -> int:
    """Print every violation; return 1 if there is one."""
    lines = [problem for path in _modules(FOLDERS) for problem in problems(path)]
    for path in _modules([TESTS]):
        lines += test_problems(path)
        if _is_renamed(path):
            lines += problems(path)
    lines += _ambiguous()
    print("\n".join(lines))
    return int(bool(lines))


if __name__ == "__main__":
    raise SystemExit(main())
