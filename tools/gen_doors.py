"""Generate the doors of the packages: the map in the docstring, and the table by which names are loaded on first use.

A door is a package whose `__init__.py` imports its public names under `if TYPE_CHECKING:`. These imports are the
source; `from package import module as module` makes a whole module public. See CONTRIBUTING.md, "Doors".
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.check_layout import module_of
from tools.check_sizes import PACKAGES

WIDTH: Final = 120
MAP: Final = "Public, in the order in which to read them:"
BEGIN: Final = "if TYPE_CHECKING:"
LOADER: Final = "from schema.doors import open_door"


@dataclass(frozen=True, slots=True)
class Door:
    """The public names of a package, by the module that defines them; a public module has no names here."""

    package: str
    path: Path
    names: Mapping[str, Sequence[str]]

    @property
    def exports(self) -> frozenset[str]:
        """All public names, and the last part of the names of public modules."""
        return frozenset(name for module, names in self.names.items() for name in names or [module.rpartition(".")[2]])

    @property
    def public_modules(self) -> frozenset[str]:
        """The modules that are public as a whole."""
        return frozenset(module for module, names in self.names.items() if not names)


def doors() -> list[Door]:
    """Return the doors of the product, in the order of their names."""
    return list(_doors())


def _doors() -> Iterator[Door]:
    for path in sorted(path for package in PACKAGES for path in Path(package).rglob("__init__.py")):
        text = path.read_text("utf-8")
        if LOADER not in text:
            continue
        names: dict[str, list[str]] = {}
        for statement in _imports(ast.parse(text)):
            module = statement.module or ""
            for alias in statement.names:
                if _file(f"{module}.{alias.name}").exists():
                    names[f"{module}.{alias.name}"] = []
                else:
                    names.setdefault(module, []).append(alias.name)
        yield Door(module_of(path.as_posix()), path, names)


def _file(module: str) -> Path:
    return Path(module.replace(".", "/") + ".py")


def _imports(tree: ast.Module) -> list[ast.ImportFrom]:
    """Return the imports under `if TYPE_CHECKING:`."""
    blocks = [n.body for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    return [statement for block in blocks for statement in block if isinstance(statement, ast.ImportFrom)]


def in_reading_order(modules: Iterable[str]) -> list[str]:
    """Return modules with those that they import before them, otherwise in alphabetical order."""
    left = set(modules)
    needs = {module: _needs(module) for module in left}
    ordered: list[str] = []
    while left:
        ready = sorted(module for module in left if not needs[module] & left - {module}) or sorted(left)
        ordered += ready
        left -= set(ready)
    return ordered


def _needs(module: str) -> set[str]:
    statements = [n for n in ast.walk(ast.parse(_file(module).read_text("utf-8"))) if isinstance(n, ast.ImportFrom)]
    inner = {f"{n.module}.{alias.name}" for n in statements for alias in n.names}
    return inner | {n.module for n in statements if n.module}


def summary_of(module: str) -> str:
    """Return the first sentence of the docstring of a module, without its full stop."""
    text = " ".join((ast.get_docstring(ast.parse(_file(module).read_text("utf-8"))) or "").split("\n\n")[0].split())
    return text.partition(". ")[0].rstrip(".")


def text_of(door: Door) -> str:
    """Return the text that the `__init__.py` of a door should have."""
    text = door.path.read_text("utf-8")
    summary = (ast.get_docstring(ast.parse(text)) or "").partition(MAP)[0].rstrip()
    imports = text.partition(f"\n{BEGIN}\n")[2].partition("\nelse:\n")[0]
    ordered = in_reading_order(door.names)
    lines = [f'"""{summary}', "", MAP, ""]
    for module in ordered:
        kind = "" if door.names[module] else " (module)"
        line = f"* `{module.removeprefix(door.package + '.')}`{kind}: {summary_of(module)}"
        lines += textwrap.wrap(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    lines += ['"""', "", "from __future__ import annotations", "", "from typing import TYPE_CHECKING", ""]
    lines += [BEGIN, imports, "else:", f"    {LOADER}", ""]
    lines += ["    __getattr__, __dir__, __all__ = open_door(", "        __name__,", *_table(door, ordered), "    )"]
    return "\n".join(lines) + "\n"


def _place(name: str) -> tuple[int, str]:
    """Return a sort key for names: constants, then classes, then functions."""
    return 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2, name


def _table(door: Door, ordered: Sequence[str]) -> Iterator[str]:
    prefix = len(door.package) + 1
    yield f"{' ' * 8}{{" if any(door.names.values()) else f"{' ' * 8}{{}},"
    for module in ordered:
        if names := door.names[module]:
            yield from _listed(f'{" " * 12}"{module[prefix:]}": ', sorted(names, key=_place))
    if any(door.names.values()):
        yield f"{' ' * 8}}},"
    if modules := [module[prefix:] for module in ordered if not door.names[module]]:
        yield from _listed(f"{' ' * 8}modules=", modules)


def _listed(start: str, items: Sequence[str]) -> Iterator[str]:
    """Yield `start` with a list of strings, formatted as ruff does."""
    quoted = [f'"{item}"' for item in items]
    line = f"{start}[{', '.join(quoted)}],"
    if len(line) <= WIDTH:
        yield line
        return
    indent = " " * (len(start) - len(start.lstrip()))
    yield f"{start}["
    yield from (f"{indent}    {item}," for item in quoted)
    yield f"{indent}],"


def pages() -> dict[Path, str]:
    """Return the text of each door, by path."""
    root = Path(__file__).resolve().parent.parent
    return {root / door.path: text_of(door) for door in doors()}
