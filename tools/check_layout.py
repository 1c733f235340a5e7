"""Check the layout of the packages: the number of files in a folder, and import cycles between modules.

A folder holds at most MOST Python files. Imports count wherever they appear: at the top of a module, in a function,
under TYPE_CHECKING.
"""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

MOST: Final = 15
APART: Final = frozenset({"tests", "bench", "tools", "docs", "examples"})
"""Folders at the root that are not packages of the product."""


def sources() -> list[str]:
    """Return the path of every Python file of the product, relative to the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    listed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return [path for path in listed if "/" in path and path.split("/")[0] not in APART and Path(path).exists()]


def module_of(path: str) -> str:
    """Return the dotted module name of a file."""
    parts = path.removesuffix(".py").split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(name: str, tree: ast.Module, modules: Mapping[str, str]) -> Iterator[str]:
    """Yield the modules of the product that `name` imports anywhere."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [target if target in modules else node.module for target in inner]
        else:
            continue
        yield from (target for target in names if target in modules and target != name)


def cycles_of(graph: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """Return the strongly connected components of more than one module (Tarjan, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    cycles: set[frozenset[str]] = set()
    for root in sorted(graph):
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        work = [(root, iter(sorted(graph[root])))]
        while work:
            name, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    position = stack.index(name)
                    members = frozenset(stack[position:])
                    del stack[position:]
                    if len(members) > 1:
                        cycles.add(members)
            elif following not in index:
                index[following] = low[following] = len(index)
                stack.append(following)
                work.append((following, iter(sorted(graph[following]))))
            elif following in stack:
                low[name] = min(low[name], index[following])
    return cycles


def main() -> int:
    """Print every violation; return 1 if there is one."""
    paths = sources()
    flat = Counter(path.rpartition("/")[0] for path in paths)
    problems = [
        f"{folder}: {count} files, at most {MOST} are allowed: divide it into folders"
        for folder, count in sorted(flat.items())
        if count > MOST
    ]
    modules = {module_of(path): path for path in paths}
    graph = {
        name: set(imports_of(name, ast.parse(Path(path).read_text("utf-8")), modules)) for name, path in modules.items()
    }
    for members in sorted(cycles_of(graph), key=sorted):
        problems.append(f"import cycle: {' '.join(sorted(members))}")
        problems += [f"    {name} imports {' '.join(sorted(graph[name] & members))}" for name in sorted(members)]
    for problem in problems:
        print(problem)
    return int(bool(problems))


if __name__ == "__main__":
    raise SystemExit(main())
