"""Write the table of chips in docs/howto/connect-an-i2c-sensor.md from the pages in models/chips.

The lines that begin with `|` in the `page.md` of a chip are its rows; tools/gen_model_reference.py uses the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "howto" / "connect-an-i2c-sensor.md"
BEGIN, END = (
    "<!-- Written by tools/gen_chip_table.py from here -->",
    "<!-- to here -->",
)


def page() -> str:
    """Return the page with the table replaced."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    head = ["| chip | what it measures or does | model | usual address |", "|---|---|---|---|"]
    return "\n".join([before + BEGIN, "", *head, *rows(), "", END + after])


def rows() -> Iterator[str]:
    """Yield the rows of all chips, in the order of their folders."""
    for path in sorted((ROOT / "models" / "chips").glob("*/page.md")):
        yield from (line for line in path.read_text("utf-8").splitlines() if line.startswith("|"))
