"""Our ports as a gpiozero pin factory, to use gpiozero's devices on all hardware of this project, also simulated."""

from __future__ import annotations

import re
from typing import Any, Final

import trio
from gpiozero import exc
from gpiozero.pins import BoardInfo, Factory, HeaderInfo, PinInfo

from hal.boards.definition import BoardDefinition, BoardPin
from hal.hardware import Hardware
from hal.ports.digital import Line
from hal.zero.pins import PortPin

HEADER: Final = "J8"  # gpiozero's name of the main header
_NUMBERED: Final = re.compile(r"GPIO(\d+)")


class PortFactory(Factory):  # type: ignore[misc]
    """Provides the lines of `hardware` as gpiozero pins: `LED(17, pin_factory=PortFactory(hardware, nursery))`.

    Pins have the names of gpiozero (17, "GPIO17", "BOARD11", "J8:11") and those of the board definition. Devices may be
    created and used in tasks and threads. Calls do not wait (see PortPin); use `await factory.settled()` if necessary.
    Each pin is a task in `nursery`: callbacks such as `when_pressed` run in it and must not block, errors of the
    hardware end the nursery, and when it ends, outputs return to their initial state. Blocking functions of gpiozero
    (`wait_for_press`, `blink(background=False)`) need a thread. SPI is not supported.
    """

    def __init__(self, hardware: Hardware, nursery: trio.Nursery, board: str = "") -> None:
        super().__init__()
        self.hardware = hardware
        self.pins: dict[Any, PortPin] = {}
        self._nursery = nursery
        self._token = trio.lowlevel.current_trio_token()
        self._clock = trio.lowlevel.current_clock()
        definition = hardware.board(board)
        self._lines: dict[Any, Line] = {}
        self._board_info = self._describe(definition)

    async def settled(self) -> None:
        """Wait until all pins are in the state requested by gpiozero."""
        await trio.lowlevel.checkpoint()
        for pin in tuple(self.pins.values()):
            await pin.settled()

    def close(self) -> None:
        """Release all lines without driving them."""
        for pin in self.pins.values():
            pin.close()

    def pin(self, name: Any) -> PortPin:
        """Return the pin with that name, created in a task on first use."""
        for _, info in self.board_info.find_pin(name):
            if info not in self._lines:
                break
            if info not in self.pins:
                self.pins[info] = self._create(info)
            return self.pins[info]
        raise exc.PinInvalidPin(f"{name} is not a pin of {self.board_info.description}")

    def _create(self, info: Any) -> PortPin:
        pin = PortPin(self, info, self._lines[info], self._token)

        def start() -> None:
            self._nursery.start_soon(pin.run, name=f"gpiozero pin {info.name}")

        try:
            in_loop = trio.lowlevel.current_trio_token() is self._token
        except RuntimeError:
            in_loop = False
        if in_loop:
            start()
        else:
            trio.from_thread.run_sync(start, trio_token=self._token)
        return pin

    def ticks(self) -> float:
        """Return the time of Trio's clock in seconds; callable from any thread."""
        return self._clock.current_time()

    def ticks_diff(self, later: float, earlier: float) -> float:
        """Return the difference in seconds."""
        return later - earlier

    def _get_board_info(self) -> Any:
        return self._board_info

    def _describe(self, board: BoardDefinition) -> Any:
        infos = {}
        for place, pin in enumerate(board.pins, 1):
            info = _pin_info(pin, int(pin.names[0]) if pin.names[0].isdigit() else place)
            infos[info.number] = info
            if pin.line is not None:
                self._lines[info] = pin.line
        header = HeaderInfo(HEADER, (max(infos, default=0) + 1) // 2, 2, infos)
        return BoardInfo(
            revision="", model=board.title, pcb_revision="", released="", soc="", manufacturer="", memory=0, storage="",
            usb=0, usb3=0, ethernet=0, eth_speed=0, wifi=False, bluetooth=False, csi=0, dsi=0,
            headers={HEADER: header}, board=board.title,
        )  # fmt: skip


def _pin_info(pin: BoardPin, number: int) -> Any:
    others = pin.names[1:] if pin.names[0].isdigit() else pin.names
    names: set[str | int] = {*others, f"{HEADER}:{number}", f"BOARD{number}"}
    main = next((name for name in others if _NUMBERED.fullmatch(name)), None)
    if main is not None and (match := _NUMBERED.fullmatch(main)):
        names |= {int(match[1]), match[1]}
    name = main or (others[0] if others else pin.note or pin.names[0])
    interfaces = frozenset({"gpio"} if pin.line is not None else {""})
    return PinInfo(number, name, frozenset(names), "", (number + 1) // 2, 2 - number % 2, interfaces)
