"""Write docs/reference/boards.md from the tables of boards.

`python tools/gen_board_reference.py` writes the page, with `--check` it only says whether the page is current.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hal.boards.definition import BoardDefinition, BoardPin

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "boards.md"
HEAD = """# Boards

<!-- Written by tools/gen_board_reference.py; change hal/boards instead. -->

A pin of a board can be called by each of its names, in capital or small letters, and `pin 11` or `physical 11` means
the number on the header. On every board, `<chip>:<offset>` is any line of any GPIO chip (`gpiochip2:4`,
`pinctrl-rp1:17`).

The board is found from the device tree; `machine hal boards` lists the boards and marks this computer's, and
`machine hal boards NAME` prints a pin-out. A computer that is in no table is `generic`: its pins are the lines of its
GPIO chips, called `gpiochip0:4`, by the chip's label, or by the name that the kernel has for a line.

Facts are from the sources named with each board. What is known from second hand only is marked **unverified**. The
tables were checked against each other and against their sources. Raspberry Pi 3 was tried on an emulated one with the
kernel's own drivers ([tests/hil](../../tests/hil/README.md)); no table was tried on a board by hand.

A pin that can carry hardware PWM does so only if the device tree leads the channel there (on a Raspberry Pi:
`dtoverlay=pwm` or `pwm-2chan` in config.txt); elsewhere software makes the wave.
"""


def main() -> int:
    """Write or check; 1 if the page is not current."""
    text = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text() != text:
            print(f"{PAGE.relative_to(ROOT)} is not current: run python tools/gen_board_reference.py")
            return 1
        return 0
    PAGE.write_text(text)
    return 0


def page() -> str:
    """The whole page."""
    from hal.boards.catalogue import boards

    parts = [HEAD, "\n| name | board |\n|---|---|\n"]
    parts += [f"| `{board.name}` | {board.title} |\n" for board in boards()]
    pins: dict[tuple[BoardPin, ...], str] = {}
    for board in boards():
        parts += [f"{line}\n" for line in _board(board, pins)]
    return "".join(parts)


def _board(board: BoardDefinition, seen: dict[tuple[BoardPin, ...], str]) -> Iterator[str]:
    yield f"\n## {board.title}\n"
    yield f"Name `{board.name}`; device tree {', '.join(f'`{name}`' for name in board.compatible)}.\n"
    buses = {**board.i2c, **board.spi, **board.serial}
    yield f"Buses: {', '.join(f'{name} `{path}`' for name, path in buses.items())}.\n"
    if chips := sorted({pin.pwm.chip for pin in board.pins if pin.pwm is not None}):
        yield f"Hardware PWM: {', '.join(f'`{chip}`' for chip in chips)}.\n"
    for note in board.unverified:
        yield f"**Unverified:** {note}.\n"
    yield f"Sources: {'; '.join(board.sources)}.\n"
    if other := seen.get(board.pins):
        yield f"Pins as on the {other}."
        return
    seen[board.pins] = board.title
    yield "| pin | other names | line | use |"
    yield "|---|---|---|---|"
    for pin in board.pins:
        names = ", ".join(f"`{name}`" for name in pin.names[1:])
        line = f"`{pin.line.chip}` {pin.line.offset}" if pin.line is not None else ""
        yield f"| {pin.names[0]} | {names} | {line} | {pin.note} |"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    raise SystemExit(main())
