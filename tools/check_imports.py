"""Check that every name that is imported from our own modules exists there, in tests, benchmarks and tools, too.

mypy checks the packages only, and a benchmark that was not run since a renaming would fail only when it is needed.
Also check that unit tests and helpers of tests need no other room: what several rooms use is in `tests.helpers`.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

ROOMS: Final = frozenset({"e2e", "fuzz", "hil", "netns", "sim", "unit", "wine"})  # folders of `tests`
# The rooms whose modules the files of a folder may import; a file belongs to the longest of its folders here.
ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    "tests/helpers/": frozenset(),
    "tests/unit/": frozenset({"unit"}),
    "tests/unit/hil/": frozenset({"unit", "hil"}),  # tests of the helpers in tests/hil
}


def main() -> int:
    """Print every import of a name that does not exist; return 1 if there is one."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    listed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    modules = {module_name(path): Path(path) for path in listed if Path(path).is_file()}
    problems = [
        problem
        for path in modules.values()
        for text in [path.read_text("utf-8")]
        for problem in (*missing(path, text, modules), *foreign_rooms(path, text))
    ]
    print("\n".join(problems), end="\n" if problems else "")
    return int(bool(problems))


def module_name(path: str) -> str:
    """Return the dotted name of the module in a file."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def missing(path: Path, text: str, modules: Mapping[str, Path]) -> Iterator[str]:
    """Yield a message for each import in `text` of a name that one of `modules` does not have."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module in modules and not node.level:
            for alias in node.names:
                if f"{node.module}.{alias.name}" in modules or alias.name == "*":
                    continue
                if alias.name not in names_of(modules[node.module]):
                    folder = modules[node.module].parent / alias.name
                    if not folder.is_dir():  # a package without __init__.py
                        yield f"{path}:{node.lineno}: {node.module} has no {alias.name}"


def foreign_rooms(path: Path, text: str) -> Iterator[str]:
    """Yield a message for each import from a room of tests which the folder of `path` may not import."""
    folder = max((folder for folder in ALLOWED if path.as_posix().startswith(folder)), key=len, default="")
    if not folder:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "tests":
            package, _, room = (node.module or "").partition(".")
            rooms = [room.partition(".")[0]] if room else [alias.name for alias in node.names]
            for name in sorted(ROOMS.intersection(rooms) - ALLOWED[folder]):
                where = f"{path}:{node.lineno}"
                yield f"{where}: files in {folder} import nothing of {package}/{name}: move it to tests/helpers"


@cache
def names_of(path: Path) -> frozenset[str]:
    """Return the names that the module in a file defines or imports, in any branch, but not in functions."""
    return frozenset(_names(ast.parse(path.read_text("utf-8"))))


def _names(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield child.name
        elif isinstance(child, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in child.names)
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id
        else:
            yield from _names(child)


if __name__ == "__main__":
    raise SystemExit(main())
