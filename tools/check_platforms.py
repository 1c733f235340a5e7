"""Check that only the seams of `tools.platforms` depend on the operating system.

Elsewhere `sys.platform` and `os.name` are refused, and so are imports of the modules that Python has only on POSIX, as
long as the whole module would need them: a function may import them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.platforms import PACKAGES, SEAMS, needs_linux

QUESTIONS: Final = frozenset({"sys.platform", "os.name", "platform.system", "sys.getwindowsversion"})
POSIX: Final = frozenset({"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"})
WINDOWS: Final = frozenset({"_winapi", "msvcrt", "winreg"})


def main() -> int:
    """Print every violation; return 1 if there is one."""
    problems = [
        problem
        for package in PACKAGES
        for path in sorted(Path(package.replace(".", "/")).rglob("*.py"))
        for problem in breaches(path.as_posix(), path.read_text("utf-8"))
    ]
    problems += [f"tools/platforms.py: {name} does not exist" for name in sorted(SEAMS) if not Path(name).is_file()]
    print("\n".join(problems), end="\n" if problems else "")
    return int(bool(problems))


def breaches(name: str, text: str) -> Iterator[str]:
    """Yield a message for each violation in a file."""
    own = name.endswith("_windows.py") or name in SEAMS
    module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if not own and isinstance(node, ast.Attribute) and (asked := ast.unparse(node)) in QUESTIONS:
            yield f"{name}:{node.lineno}: {asked}: only the seams of tools/platforms.py ask for the system"
    for statement in tree.body:
        for imported in _imported(statement):
            if imported in POSIX and not own and not needs_linux(module):
                yield f"{name}:{statement.lineno}: imports {imported}, which Windows lacks: see tools/platforms.py"
            if imported in WINDOWS and not name.endswith("_windows.py"):
                yield f"{name}:{statement.lineno}: imports {imported}, which only modules named _windows may"


def _imported(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom):
        yield (statement.module or "").partition(".")[0]


if __name__ == "__main__":
    raise SystemExit(main())
