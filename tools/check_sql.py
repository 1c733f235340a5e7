"""Check that the cloud's SQL is only in cloud/domain and cloud/store, and that cloud/web begins no transaction."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = ("cloud/domain/", "cloud/store/")
STATEMENT = re.compile(r"\b(SELECT\s.+\sFROM|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|PRAGMA)\s", re.DOTALL)
TRANSACTIONS = frozenset({"read", "write"})  # methods of cloud.store.sql.Store
HANDLE = frozenset({"run", "many", "rows", "row"})  # methods of cloud.store.sql.Sql


def main() -> int:
    """Print every violation; return 1 if there is one."""
    root = Path(sys.argv[1]) if sys.argv[1:] else ROOT
    problems = [problem for path in sorted((root / "cloud").rglob("*.py")) for problem in breaches(root, path)]
    print("\n".join(problems), end="\n" if problems else "")
    return int(bool(problems))


def breaches(root: Path, path: Path) -> Iterator[str]:
    """Yield a message for each violation in a file."""
    name = path.relative_to(root).as_posix()
    if name.startswith(ALLOWED):
        return
    tree = ast.parse(path.read_text())
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    prose |= {id(piece) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for piece in node.values}
    for node in ast.walk(tree):
        where = f"{name}:{getattr(node, 'lineno', 0)}"
        if id(node) not in prose and STATEMENT.search(_text(node)):
            yield f"{where}: SQL outside cloud/domain and cloud/store; make it a function of the aggregate"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            receiver, call = node.func.value, node.func.attr
            if isinstance(receiver, ast.Name) and receiver.id == "sql" and call in HANDLE:
                yield f"{where}: sql.{call}() outside cloud/domain and cloud/store; call a function of the aggregate"
            elif name.startswith("cloud/web/") and call in TRANSACTIONS and _name(receiver) == "store":
                yield f"{where}: the web begins a transaction; call a method of a service"


def _name(node: ast.expr) -> str:
    """Return the last name of `a.b.c`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.AST) -> str:
    """Return the text of a string, with a word in place of each expression of an f-string; empty for anything else."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or "expression" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


if __name__ == "__main__":
    raise SystemExit(main())
