"""Change random comparisons in pure modules, one at a time, and run the tests: a change that no test notices survives.

`python -m tools.mutate [--count N] [--seed N] [PACKAGE ...]` works in a copy of the tracked files, so that the checkout
stays as it is. A mutant is first shown to the unit tests of the same place (`tests/unit/schema/test_names.py` for
`schema/names.py`), then to all that import the module, then to all of its room: the nearest folder of tests that
mirrors its own. Each survivor is printed with its line, and tests that did not end. 200 take about an hour.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from tools.check_layout import module_of
from tools.check_pure import pure_modules
from tools.check_sizes import PACKAGES

OPPOSITES: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
"""The operator that replaces another one: its negation, or of an order the same with or without equality."""

LIMIT: Final = 240.0
"""Seconds for a group of tests of one mutant. One that runs into an endless loop counts as noticed, and is printed."""

MEMORY: Final = 6 * 1024**3
"""Bytes of address space for the tests of one mutant: an endless loop may collect something."""

NO_TESTS: Final = 5
"""Exit status of pytest if it has collected nothing."""

_seconds: Final = count(1)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed comparison: the expression at a place, and its text afterwards."""

    path: Path
    line: int
    before: str
    after: str
    start: int  # offsets in the encoded text
    end: int

    def applied(self, source: bytes) -> bytes:
        """Return the source with the change."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield a mutant for each operator of a comparison in a module, except those in assertions."""
    source = path.read_bytes()
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    tree = ast.parse(source)
    asserted = {
        node for statement in ast.walk(tree) if isinstance(statement, ast.Assert) for node in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare) or node in asserted:
            continue
        before = ast.unparse(node)
        for index, operator in enumerate(node.ops):
            changed = list(node.ops)
            changed[index] = OPPOSITES[type(operator)]()
            after = f"({ast.unparse(ast.Compare(node.left, changed, node.comparators))})"
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            start = lines[node.lineno - 1] + node.col_offset
            end = lines[node.end_lineno - 1] + node.end_col_offset
            yield Mutant(path, node.lineno, before, after, start, end)


def rooms(path: Path, users: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return the tests of a module in groups, the nearest first: its own file, those that import it, its room's."""
    own = Path("tests", "unit", *path.parts[:-1], f"test_{path.stem}.py")
    near = sorted(users.get(module_of(str(path)), ()))
    room = next(folder for parent in path.parents if (folder := Path("tests", "unit", parent)).is_dir())
    return [group for group in ([str(own)] if own.exists() else [], near, [str(room)]) if group]


def users_of_modules() -> dict[str, set[str]]:
    """Return the files of tests that import each module by its own name."""
    users = defaultdict[str, set[str]](set)
    for path in Path("tests", "unit").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                    users[name].add(str(path))
    return users


def write(path: Path, content: bytes) -> None:
    """Write a module such that its compiled form is no longer current, however soon after the last change."""
    path.write_bytes(content)
    os.utime(path, (next(_seconds), next(_seconds)))


def survives(mutant: Mutant, copy: Path, users: Mapping[str, Collection[str]]) -> bool:
    """Return whether all tests pass with a mutant in a copy of the project."""
    target = copy / mutant.path
    source = target.read_bytes()
    write(target, mutant.applied(source))
    try:
        return not any(fails(group, copy) for group in rooms(mutant.path, users))
    finally:
        write(target, source)


def fails(tests: Sequence[str], copy: Path) -> bool:
    """Return whether one of the tests fails, or they do not end within LIMIT, which is printed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, timeout=LIMIT, check=False, preexec_fn=limit_memory
        )
    except subprocess.TimeoutExpired:
        print(f"did not end within {LIMIT:.0f} s: {' '.join(tests)}", flush=True)
        return True
    return done.returncode not in (0, NO_TESTS)


def limit_memory() -> None:
    """Limit the memory of this process to MEMORY."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main(argv: Sequence[str] | None = None) -> int:
    """Try random mutants and print the survivors; return 1 if fewer than 95 % were noticed."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    options = parser.parse_args(argv)
    paths = [path for package in options.packages for path in pure_modules(Path(package))]
    every = [mutant for path in paths for mutant in mutants(path)]
    chosen = random.Random(options.seed).sample(every, min(options.count, len(every)))
    print(f"{len(every)} comparisons in {len(paths)} pure modules; {len(chosen)} tried", flush=True)
    survivors, users = 0, users_of_modules()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy")
        for name in subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=True).stdout.split(b"\0"):
            if name and (source := Path(os.fsdecode(name))).is_file():
                (copy / source).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, copy / source)
        for number, mutant in enumerate(chosen, 1):
            if survives(mutant, copy, users):
                survivors += 1
                print(f"{number}: {mutant.path}:{mutant.line}: {mutant.before}  ->  {mutant.after}", flush=True)
    noticed = len(chosen) - survivors
    print(f"{noticed} of {len(chosen)} noticed ({noticed / max(1, len(chosen)):.1%})")
    return int(noticed < 0.95 * len(chosen))


if __name__ == "__main__":
    raise SystemExit(main())
