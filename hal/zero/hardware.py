"""The family gpiozero: lines through a gpiozero pin factory, everything else as in the family linux."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from hal.boards.definition import BoardDefinition, BoardPin
from hal.errors import Fault, HalError
from hal.linux.hardware import LinuxHardware
from hal.ports.digital import DigitalInput, DigitalOutput, InputSettings, Line, OutputSettings
from hal.ports.pwm import PwmChannel, PwmOutput
from hal.zero.library import default_factory

CHIP: Final = "gpiozero"
"""The name of the chip of all lines in this family; the offset of a line is gpiozero's number of the pin."""

_NUMBERED: Final = re.compile(r"GPIO(\d+)")


class ZeroHardware(LinuxHardware):
    """The hardware of this computer, with pins through `factory`, by default the one that gpiozero selects.

    HalError (unsupported) if gpiozero is not installed or cannot access the pins.
    """

    family = "gpiozero"

    def __init__(self, factory: Any = None) -> None:
        super().__init__()
        self._factory = default_factory() if factory is None else factory

    def board(self, name: str = "") -> BoardDefinition:
        """Return the board that the factory describes; with `name`, the pins have the names of that board."""
        if not name:
            return board_of(self._factory.board_info)
        board = super().board(name)
        pins = []
        for pin in board.pins:
            number = next((match[1] for alias in pin.names if (match := _NUMBERED.fullmatch(alias))), None)
            line = Line(CHIP, int(number)) if number is not None and pin.line is not None else None
            pins.append(replace(pin, line=line, pwm=None))
        return replace(board, pins=tuple(pins))

    def digital_input(self, line: Line, settings: InputSettings) -> AbstractAsyncContextManager[DigitalInput]:
        """Open a pin of the factory."""
        from hal.zero.lines import digital_input

        return digital_input(self._factory, _name(line), settings)

    def digital_output(self, line: Line, settings: OutputSettings) -> AbstractAsyncContextManager[DigitalOutput]:
        """Open a pin of the factory."""
        from hal.zero.lines import digital_output

        return digital_output(self._factory, _name(line), settings)

    def pwm(self, target: PwmChannel | Line) -> AbstractAsyncContextManager[PwmOutput]:
        """Open a pin for a wave by the factory, or by software if the factory does not support it; or a channel."""
        return super().pwm(target) if isinstance(target, PwmChannel) else self._wave(target)

    @asynccontextmanager
    async def _wave(self, line: Line) -> AsyncIterator[PwmOutput]:
        from hal.linux.pwm.software import toggled
        from hal.zero.lines import pwm

        async with AsyncExitStack() as stack:
            try:
                wave = await stack.enter_async_context(pwm(self._factory, _name(line)))
            except HalError as error:
                if error.fault is not Fault.UNSUPPORTED:
                    raise
                output = await stack.enter_async_context(self.digital_output(line, OutputSettings()))
                wave = await stack.enter_async_context(toggled(output, str(line)))
            yield wave


def board_of(info: Any) -> BoardDefinition:
    """Return the board that a factory's `board_info` describes, with all numbered pins."""
    pins = []
    for header in info.headers.values():
        for pin in header.pins.values():
            number = _NUMBERED.fullmatch(str(pin.name))
            line = Line(CHIP, int(number[1])) if number is not None and "gpio" in pin.interfaces else None
            main = str(pin.number) if len(header.pins) > 20 else f"{header.name}:{pin.number}"
            names = (main, str(pin.name), f"BCM{number[1]}") if number is not None else (main,)
            pins.append(BoardPin(names, line, note="" if line is not None else str(pin.name)))
    return BoardDefinition(CHIP, info.description, pins=tuple(pins))


def _name(line: Line) -> str:
    if line.chip != CHIP:
        raise HalError(
            f"{line}: the family gpiozero has no GPIO chips",
            Fault.GONE,
            remedy=f"use the number of the pin on the header, GPIOn, or {CHIP}:n",
        )
    return f"GPIO{line.offset}"
