"""Print figures about the structure of the packages: `python -m tools.structure [COMMIT]`.

Imports count wherever they appear, also under TYPE_CHECKING and in functions. A hub is a module that many modules
import and that itself imports many: the largest has the highest product of both numbers.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.check_layout import MOST, cycles_of, imports_of, module_of, sources
from tools.check_sizes import PACKAGES

NEAR: Final = 12  # files in a folder from which the audit of the structure counted it as full
SHOWN: Final = 5  # folders that are listed by name


@dataclass(frozen=True, slots=True)
class Structure:
    """Figures about the structure of one state of the sources."""

    files: int
    folders: Mapping[str, int]  # Python files directly in each folder
    cycles: frozenset[frozenset[str]]  # of modules that import each other
    imports: Mapping[str, frozenset[str]]  # modules that each module imports
    importers: Mapping[str, int]  # number of modules that import each module
    public: Counter[str]  # modules of each package that other packages import

    @property
    def hub(self) -> str:
        """The module with the highest product of importers and imports."""
        return max(self.imports, key=lambda name: (self.importers[name] * len(self.imports[name]), name))


def structure(texts: Mapping[str, str]) -> Structure:
    """Compute the figures of Python files, given by path."""
    modules = {module_of(path): path for path in texts}
    imports = {name: frozenset(imports_of(name, ast.parse(texts[path]), modules)) for name, path in modules.items()}
    return Structure(
        len(texts),
        Counter(path.rpartition("/")[0] for path in texts),
        frozenset(cycles_of({name: set(targets) for name, targets in imports.items()})),
        imports,
        Counter(target for targets in imports.values() for target in targets),
        Counter(module.partition(".")[0] for module in _across(imports)),
    )


def _across(imports: Mapping[str, frozenset[str]]) -> set[str]:
    """Return the modules that are imported from another package at the root."""
    return {
        target
        for name, targets in imports.items()
        for target in targets
        if target.partition(".")[0] != name.partition(".")[0]
    }


def committed(commit: str) -> dict[str, str]:
    """Return the text of each Python file of the packages at a commit, by path."""
    paths = [
        path
        for path in _git("ls-tree", "-r", "--name-only", commit).splitlines()
        if path.endswith(".py") and path.partition("/")[0] in PACKAGES
    ]
    return {path: _git("show", f"{commit}:{path}") for path in paths}


def current() -> dict[str, str]:
    """Return the text of each Python file of the packages in the working tree, by path."""
    return {path: Path(path).read_text("utf-8") for path in sources()}


def lines_of(figures: Structure) -> Iterator[str]:
    """Yield a line for each figure."""
    sizes = figures.folders.values()
    in_cycles = sum(len(cycle) for cycle in figures.cycles)
    hub = figures.hub
    yield f"source files: {figures.files}"
    yield f"folders with more than {MOST} files: {_above(sizes, MOST)}; with more than {NEAR}: {_above(sizes, NEAR)}"
    largest = sorted(figures.folders.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]
    yield f"largest folders: {', '.join(f'{folder} {count}' for folder, count in largest)}"
    yield f"import cycles: {len(figures.cycles)}, with {in_cycles} modules"
    most = ", ".join(f"{package} {count}" for package, count in figures.public.most_common(SHOWN))
    yield f"modules imported from other packages: {figures.public.total()} ({most})"
    yield f"largest hub: {hub}, imported by {figures.importers[hub]} and importing {len(figures.imports[hub])} modules"


def _above(sizes: Iterable[int], limit: int) -> int:
    return sum(size > limit for size in sizes)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout


def main(arguments: list[str]) -> int:
    """Print the figures of the commit that is named, or of the working tree."""
    print("\n".join(lines_of(structure(committed(arguments[0]) if arguments else current()))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
