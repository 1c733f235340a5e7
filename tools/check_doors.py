"""Check that packages and examples import only public names of other packages.

Public are the names in a door (see gen_doors) and those that an `__init__.py` without a door defines, or imports as
`from module import name as name`. Everything else is private to the package at the root that contains it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.check_layout import module_of, sources
from tools.gen_doors import Door, doors

WITHOUT_DOORS: Final = ("micro",)
"""Packages of which each module is public. `micro` cannot have a door: it imports nothing else of the project."""


@dataclass(frozen=True, slots=True)
class World:
    """All modules, the doors by package, and the names that each `__init__.py` offers without a door."""

    modules: frozenset[str]
    doors: Mapping[str, Door]
    eager: Mapping[str, frozenset[str]]

    @property
    def public_modules(self) -> frozenset[str]:
        """The modules that are public as a whole."""
        return frozenset(module for door in self.doors.values() for module in door.public_modules)


def main() -> int:
    """Print every import of a private name; return 1 if there is one."""
    files = [*sources(), *(str(path) for path in sorted(Path("examples").rglob("*.py")))]
    modules = frozenset(module_of(path) for path in sources())
    public = {door.package: door for door in doors()}
    eager = {module_of(path): own_names(path) for path in sources() if path.endswith("/__init__.py")}
    world = World(modules, public, eager)
    problems = [problem for path in files for problem in breaches(path, Path(path).read_text("utf-8"), world)]
    print("\n".join(problems), end="\n" if problems else "")
    return int(bool(problems))


def own_names(path: str) -> frozenset[str]:
    """Return the names that a file defines, or imports for others to use."""
    names: set[str] = set()
    for node in ast.parse(Path(path).read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            names.update(alias.name for alias in node.names if alias.asname == alias.name)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(ast.unparse(node.target))
        elif isinstance(node, ast.Assign):
            names.update(ast.unparse(target) for target in node.targets)
    return frozenset(name for name in names if not name.startswith("_"))


def breaches(path: str, text: str, world: World) -> Iterator[str]:
    """Yield a message for each import in `text` of something private in another package."""
    own = path.partition("/")[0]
    others = {module.partition(".")[0] for module in world.modules} - {own}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                if top in others and alias.name not in world.doors:
                    yield f"{path}:{node.lineno}: import {alias.name}: import its names: from {top} import ..."
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in others:
            for alias in node.names:
                if remedy := _refusal(node.module, alias.name, world):
                    yield f"{path}:{node.lineno}: {alias.name} of {node.module} is private: {remedy}"


def _refusal(module: str, name: str, world: World) -> str:
    """Return what to do instead of importing a name from a module; empty if this is allowed."""
    whole = f"{module}.{name}"
    if module.partition(".")[0] in WITHOUT_DOORS:
        return ""
    if {whole, module} & world.public_modules:
        return ""
    if module in world.doors:
        return "" if name in world.doors[module].exports else f"add it to the door {module}, or use what is there"
    if whole in world.doors or name in world.eager.get(module, ()):
        return ""
    for door in world.doors.values():
        if name in door.names.get(module, ()):
            return f"write: from {door.package} import {name}"
    return "add it to the door of its package, or use what is there (CONTRIBUTING.md, Doors)"


if __name__ == "__main__":
    raise SystemExit(main())
