"""A USB I2C adapter that behaves like an i2c-tiny-usb for its driver, with chips of models.chips on its bus."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from hal.sim.target import I2cTarget, Nak, Stall
from tests.hil.guest.uevents import wait_until
from tests.hil.guest.usb_cable import UsbCable

# drivers/i2c/busses/i2c-tiny-usb.c: the requests, and the answers to GET_STATUS
GET_FUNCTIONS, SET_DELAY, GET_STATUS, TRANSFER = 1, 2, 3, 4
ACKNOWLEDGED, REFUSED = 1, 2
FUNCTIONS = 0x0EFF0009  # I2C_FUNC_I2C | I2C_FUNC_SMBUS_EMUL


class _Bridge:
    """The firmware: converts control requests to bus messages."""

    def __init__(self, chips: dict[int, I2cTarget], refused: set[int]) -> None:
        self.chips = chips
        self.refused = refused
        self.messages: Counter[int] = Counter()
        self._status = 0

    def control_in(self, request_type: int, request: int, value: int, index: int, length: int) -> bytes:
        if request == GET_FUNCTIONS:
            return struct.pack("<I", FUNCTIONS)
        if request == GET_STATUS:
            return bytes([self._status])
        if request & TRANSFER:
            return self._transfer(index, lambda chip: chip.read(length)) or bytes(length)
        return b""

    def control_out(self, request_type: int, request: int, value: int, index: int, data: bytes) -> None:
        if request & TRANSFER:
            self._transfer(index, lambda chip: chip.write(data))

    def write(self, endpoint: int, data: bytes) -> None:
        raise Stall

    def _transfer(self, address: int, message: Callable[[I2cTarget], bytes | None]) -> bytes:
        self.messages[address] += 1
        try:
            if address in self.refused or address not in self.chips:
                raise Nak
            data = message(self.chips[address])
        except Nak:
            self._status = REFUSED
            return b""
        self._status = ACKNOWLEDGED
        return data or b""


class Adapter(UsbCable):
    """The adapter, with its chips by address. If `stalled`, the clock of its bus is held low."""

    def __init__(self, serial: str = "RIGI2C1", plugged: bool = True) -> None:
        self.chips: dict[int, I2cTarget] = {}
        self.refused: set[int] = set()
        self._bridge = _Bridge(self.chips, self.refused)
        super().__init__(
            self._bridge,
            plugged,
            vendor=0x0403,
            product=0xC631,
            release=0x0205,
            manufacturer="Rig",
            name="i2c-tiny-usb",
            serial=serial,
        )

    def attach(self, address: int, chip: I2cTarget) -> None:
        """Attach a chip to the bus."""
        if address in self.chips:
            raise ValueError(f"address 0x{address:02x} has a chip already")
        self.chips[address] = chip

    def detach(self, address: int) -> None:
        """Detach a chip."""
        del self.chips[address]

    def refuse(self, address: int, refused: bool = True) -> None:
        """Make every chip at an address refuse to acknowledge."""
        (self.refused.add if refused else self.refused.discard)(address)

    def messages(self, address: int | None = None) -> int:
        """Return the number of messages to an address, or to all: each write and each read of a transaction counts."""
        counts = self._bridge.messages
        return counts.total() if address is None else counts[address]

    async def node(self) -> str:
        """Wait for its device node, such as /dev/i2c-3, and return it."""
        return await wait_until(self._node)

    def _node(self) -> str:
        path = self.system_path()
        if path:
            for entry in Path(path).glob("*/i2c-*/i2c-dev/i2c-*"):
                node = Path("/dev") / entry.name
                if node.exists():
                    return str(node)
        return ""

    async def plug(self, serial: str = "") -> None:
        """Plug it in, see UsbCable; return when the bus exists."""
        await super().plug(serial)
        await self.node()
