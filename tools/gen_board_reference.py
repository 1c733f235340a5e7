"""Write docs/reference/boards.md from the tables of boards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hal.boards.definition import BoardDefinition, BoardPin

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "boards.md"
HEAD = """# Boards

<!-- Written by tools/gen_board_reference.py; change hal/boards instead. -->

You can use any name of a pin, in upper or lower case; `pin 11` and `physical 11` mean the number on the header. On
every board, `<chip>:<offset>` is any line of any GPIO chip (`gpiochip2:4`, `pinctrl-rp1:17`).

The board is detected from the device tree. `machine hal boards` lists the boards and marks the one of this computer,
and `machine hal boards NAME` prints a pin-out. A computer that is in no table is `generic`: its pins are the lines of
its GPIO chips. Name them by chip (`gpiochip0:4`), by the label of the chip, or by the kernel's name of the line.

The sources of the data are named with each board. Data that was not verified with a primary source is marked
**unverified**. The tables were checked against each other and against their sources. Raspberry Pi 3 was tested on an
emulated board with the kernel's own drivers ([tests/hil](../../tests/hil/README.md)); no table was tested by hand on a
real board.

A pin with hardware PWM uses it only if the device tree routes the channel to the pin (on a Raspberry Pi:
`dtoverlay=pwm` or `pwm-2chan` in config.txt); otherwise PWM is generated in software.
"""


def page() -> str:
    """Return the text of the page."""
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
