"""Check that only support/foreign removes, walks and unpacks what strangers may have written.

`shutil.rmtree`, `os.walk` and `Path.rglob` call themselves for each folder: 1,000 nested folders end them with
RecursionError, which is not an OSError. `tarfile` and `zipfile` trust what an archive says. Archives may be written.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
APART: Final = frozenset({"tests", "bench", "tools", "docs", "examples"})
ALLOWED: Final = "support/foreign/"
REFUSED: Final = {
    "shutil.rmtree": "use remove or erase of support.foreign.removal",
    "shutil.unpack_archive": "use support.foreign.unpacking or support.foreign.apart",
    "os.walk": "use support.foreign.walking",
    "os.fwalk": "use support.foreign.walking",
    "os.removedirs": "use remove of support.foreign.removal",
}
READERS: Final = {"tarfile.open": 1, "tarfile.TarFile": 1, "zipfile.ZipFile": 1}  # position of the mode
READ: Final = "reads an archive: use support.foreign.tar, support.foreign.unpacking or support.foreign.apart"


def main() -> int:
    """Print every violation; return 1 if there is one."""
    root = Path(sys.argv[1]) if sys.argv[1:] else ROOT
    packages = sorted(path.parent for path in root.glob("*/__init__.py") if path.parent.name not in APART)
    problems = [
        problem for package in packages for path in sorted(package.rglob("*.py")) for problem in breaches(root, path)
    ]
    print("\n".join(problems), end="\n" if problems else "")
    return int(bool(problems))


def breaches(root: Path, path: Path) -> Iterator[str]:
    """Yield a message for each violation in a file."""
    name = path.relative_to(root).as_posix()
    if name.startswith(ALLOWED):
        return
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        where = f"{name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.ImportFrom) and node.module in ("shutil", "os", "tarfile", "zipfile"):
            for imported in (f"{node.module}.{alias.name}" for alias in node.names):
                if imported in REFUSED or imported in READERS:
                    yield f"{where}: imports {imported} by its name, which hides it: import {node.module}"
        elif isinstance(node, ast.Attribute):
            if node.attr == "rglob":
                yield f"{where}: rglob: use walk of support.foreign.walking"
            elif (called := _dotted(node)) in REFUSED:
                yield f"{where}: {called}: {REFUSED[called]}"
        elif (
            isinstance(node, ast.Call)
            and (called := _dotted(node.func)) in READERS
            and not _mode(node, READERS[called]).startswith(("w", "x"))
        ):
            yield f"{where}: {called} {READ}"


def _dotted(node: ast.expr) -> str:
    """Return `module.name` of an attribute of a name."""
    return (
        f"{node.value.id}.{node.attr}" if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else ""
    )


def _mode(call: ast.Call, position: int) -> str:
    """Return the literal mode of a call; "r" if there is none, or it is computed."""
    values = [keyword.value for keyword in call.keywords if keyword.arg == "mode"] or call.args[position : position + 1]
    value = values[0].value if values and isinstance(values[0], ast.Constant) else None
    return value if isinstance(value, str) else "r"


if __name__ == "__main__":
    raise SystemExit(main())
