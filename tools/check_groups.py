"""Find plain `except` clauses around a nursery: they do not catch the exception group that a nursery raises.

Allowed are `except*`, clauses that name a group or BaseException, `with ungrouped(...)` around the nursery (see
support.concurrency), and clauses for TooSlowError, which is raised outside. A call of a function of the same module
that opens a nursery counts as a nursery.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.check_sizes import PACKAGES

HARMLESS: Final = frozenset({"TooSlowError"})
CATCHING: Final = frozenset({"BaseException", "BaseExceptionGroup", "ExceptionGroup", "Exception"})
Function = ast.AsyncFunctionDef | ast.FunctionDef


def main() -> int:
    """Print what is wrong in all packages; return 1 if there is something."""
    wrong = [
        f"{path}:{line}: a plain `except` around a nursery: use `with ungrouped({', '.join(sorted(names))})` inside"
        for package in PACKAGES
        for path in sorted(Path(package).rglob("*.py"))
        for line, names in findings(path.read_text())
    ]
    print("\n".join(wrong))
    return bool(wrong)


def findings(source: str) -> list[tuple[int, frozenset[str]]]:
    """Return lines of `try` statements whose clauses miss exception groups, and the exceptions that they name."""
    if "open_nursery" not in source:
        return []
    tree = ast.parse(source)
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, Function)}
    leaking: set[str] = set()
    while more := {name for name, node in functions.items() if _leaks(node.body, leaking)} - leaking:
        leaking |= more
    return [
        (node.lineno, names)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try) and (names := _missing(node)) and _leaks(node.body, leaking)
    ]


def _missing(node: ast.Try) -> frozenset[str]:
    """Return the exceptions that are handled alone but not in a group; empty if groups are handled, too."""
    names = {name for handler in node.handlers for name in _names(handler.type)}
    return frozenset() if names & CATCHING else frozenset(names - HARMLESS)


def _names(clause: ast.expr | None) -> Iterator[str]:
    for node in clause.elts if isinstance(clause, ast.Tuple) else [clause]:
        yield "BaseException" if node is None else ast.unparse(node).rpartition(".")[2]


def _leaks(body: list[ast.stmt], leaking: set[str]) -> bool:
    """Return whether a group of a nursery can leave these statements."""
    return any(_opens(node, leaking) for node in _nodes(body))


def _nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield all nodes of statements except those in functions, and those whose groups are handled."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, Function | ast.Lambda | ast.TryStar) or _is_ungrouped(node):
            continue
        if isinstance(node, ast.Try) and node.handlers and not _missing(node):
            waiting += [*node.orelse, *node.finalbody, *(part for handler in node.handlers for part in handler.body)]
            continue
        waiting += ast.iter_child_nodes(node)


def _is_ungrouped(node: ast.AST) -> bool:
    return isinstance(node, ast.With) and any(_called(item.context_expr) == "ungrouped" for item in node.items)


def _called(node: ast.expr) -> str:
    """Return the name of the function or method that an expression calls; empty for other expressions."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _opens(node: ast.AST, leaking: set[str]) -> bool:
    if isinstance(node, ast.AsyncWith):
        return any(_called(item.context_expr) == "open_nursery" for item in node.items)
    if not isinstance(node, ast.Await) or not isinstance(node.value, ast.Call):
        return False
    owner = node.value.func.value if isinstance(node.value.func, ast.Attribute) else None
    is_own = owner is None or (isinstance(owner, ast.Name) and owner.id == "self")
    return is_own and _called(node.value) in leaking


if __name__ == "__main__":
    raise SystemExit(main())
