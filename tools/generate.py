"""Write every generated file of the project (`make generate`).

python -m tools.generate           # write stale files and name them
python -m tools.generate --check   # write nothing; exit 1 if a file is stale
python -m tools.generate --list    # name each file with its generator

A generator is a module `tools/gen_*.py` with PAGE, the path of the file, and `page()`, which returns its text; or with
`pages()`, which returns the text of several files by path.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIRST = ("gen_doors", "gen_model_table")  # in this order


@dataclass(frozen=True)
class Generator:
    """A generated file and the module that generates it."""

    name: str
    path: Path
    text: Callable[[], str]

    def stale(self) -> str | None:
        """Return the text that the file should have; None if it is up to date."""
        text = self.text()
        return None if self.path.exists() and self.path.read_text("utf-8") == text else text


def generators() -> Iterator[Generator]:
    """Yield every generator in the order of their names, after those whose files the others import."""
    files = Path(__file__).parent.glob("gen_*.py")
    for file in sorted(files, key=lambda file: (file.stem not in FIRST, file.name)):
        module = importlib.import_module(f"tools.{file.stem}")
        name = f"tools/{file.name}"
        if hasattr(module, "pages"):
            yield from (Generator(name, path, partial(str, text)) for path, text in module.pages().items())
        else:
            yield Generator(name, module.PAGE, module.page)


def main() -> int:
    """Write, check or list the files."""
    status = 0
    for generator in generators():
        shown = generator.path.relative_to(ROOT)
        if "--list" in sys.argv[1:]:
            print(f"{shown}: {generator.name}")
        elif (text := generator.stale()) is None:
            continue
        elif "--check" in sys.argv[1:]:
            print(f"{shown}: stale; run `make generate` ({generator.name} writes it)")
            status = 1
        else:
            generator.path.write_text(text, "utf-8")
            print(f"{shown}: written by {generator.name}")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
