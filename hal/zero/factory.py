"""Our ports as a gpiozero pin factory: gpiozero's devices on any hardware of this project, also simulated."""

from __future__ import annotations

import re
from typing import Any, Final

import trio
from gpiozero import exc
from gpiozero.pins import BoardInfo, Factory, HeaderInfo, PinInfo

from hal.boards.definition import BoardDefinition, BoardPin
from hal.ports.digital import Line
from hal.ports.hardware import Hardware
from hal.zero.pins import PortPin

HEADER: Final = "J8"  # what gpiozero calls the main header
_NUMBERED: Final = re.compile(r"GPIO(\d+)")


class PortFactory(Factory):  # type: ignore[misc]
    """Makes gpiozero pins of the lines of `hardware`: `LED(17, pin_factory=PortFactory(hardware, nursery))`.

    Pins are called as gpiozero calls them on the board (17, "GPIO17", "BOARD11", "J8:11"), or by any other name that
    the board definition has. Devices may be made and used in tasks and in threads; nothing waits (see PortPin), so
    `await factory.settled()` where it matters. Each pin is a task of `nursery`: callbacks such as `when_pressed` run in
    it and must not block, errors of the hardware end the nursery, and when it ends, outputs go to the state they were
    made with. What blocks in gpiozero (`wait_for_press`, `blink(background=False)`) needs a thread. There is no SPI.
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
        """Wait until every pin is what gpiozero asked it to be."""
        await trio.lowlevel.checkpoint()
        for pin in tuple(self.pins.values()):
            await pin.settled()

    def close(self) -> None:
        """Drive nothing and free every line."""
        for pin in self.pins.values():
            pin.close()

    def pin(self, name: Any) -> PortPin:
        """The one pin with that name. Made in a task."""
        for _, info in self.board_info.find_pin(name):
            if info not in self._lines:
                break
            if info not in self.pins:
                self.pins[info] = self._made(info)
            return self.pins[info]
        raise exc.PinInvalidPin(f"{name} is not a pin of {self.board_info.description}")

    def _made(self, info: Any) -> PortPin:
        pin = PortPin(self, info, self._lines[info], self._token)

        def start() -> None:
            self._nursery.start_soon(pin.run, name=f"gpiozero pin {info.name}")

        try:
            here = trio.lowlevel.current_trio_token() is self._token
        except RuntimeError:
            here = False
        if here:
            start()
        else:
            trio.from_thread.run_sync(start, trio_token=self._token)
        return pin

    def ticks(self) -> float:
        """Seconds of the run's clock, from any thread."""
        return self._clock.current_time()

    def ticks_diff(self, later: float, earlier: float) -> float:
        """Seconds."""
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
