"""Check that modules described as pure import no scheduler, clock, randomness, input or output.

The word "pure" in a module docstring covers that module; in a package docstring, it covers the whole package. A phrase
such as "Pure, except for Pillow" gets no exceptions: FORBIDDEN applies in full.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.check_sizes import PACKAGES
from tools.gen_doors import MAP

FORBIDDEN = frozenset({"trio", "socket", "os", "subprocess", "time", "random"})
CLAIM = re.compile(r"\bpure\b(?! Python)", re.IGNORECASE)


def claims(tree: ast.Module) -> bool:
    """Return whether the docstring of a module says that it is pure. The map of a door is about its modules."""
    return CLAIM.search((ast.get_docstring(tree) or "").partition(MAP)[0]) is not None


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and top-level name of each import anywhere in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, (node.module or "").partition(".")[0]


def pure_modules(root: Path) -> dict[Path, ast.Module]:
    """Return every module below `root` that its own docstring, or that of an enclosing package, calls pure."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted(root.rglob("*.py"))}
    packages = {path.parent for path, tree in trees.items() if path.name == "__init__.py" and claims(tree)}
    return {path: tree for path, tree in trees.items() if claims(tree) or packages.intersection(path.parents)}


def problems(root: Path) -> Iterator[str]:
    """Yield every forbidden import of a pure module below `root`."""
    for path, tree in pure_modules(root).items():
        for line, name in imported(tree):
            if name in FORBIDDEN:
                yield f"{path}:{line}: imports {name}, but its docstring, or its package's, says that it is pure"


def main() -> int:
    """Print every violation; return 1 if there is one."""
    breaches = [problem for package in PACKAGES for problem in problems(Path(package))]
    print("\n".join(breaches))
    if "-v" in sys.argv:
        print(f"{sum(len(pure_modules(Path(package))) for package in PACKAGES)} pure modules")
    return int(bool(breaches))


if __name__ == "__main__":
    raise SystemExit(main())
