"""Generic component `at24`: commands for an EEPROM (24C01 to 24C512) on an I2C bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from engine import Attributes, Generic, model
from hal import Registers
from models.chips.at24 import chip as at24
from models.chips.at24.attributes import At24Config
from models.chips.common.device import I2cDevice
from schema import ErrorKind, MachineError

LONGEST: Final = 4096  # bytes per command, which keeps answers small and writes within seconds
COMMANDS: Final = '{"size": {}}, {"read": {"offset", "count"}}, {"write": {"offset", "hex" or "text"}}, {"erase": ...}'


@model("rdk:builtin:at24")
class At24(I2cDevice[at24.At24], Generic):
    """Commands: `size`; `read` (`offset`, `count`) returns `hex`; `write` (`offset`, and `hex` or `text`) writes and
    verifies; `erase` (`offset`, `count`) fills with 0xFF. Each transfers at most 4096 bytes.
    """

    Config: ClassVar[type[Attributes]] = At24Config

    def chip_of(self, registers: Registers) -> at24.At24:
        """Create the driver of the configured chip."""
        return at24.At24(registers, at24.MODELS[self.attributes.chip])

    def addresses(self) -> tuple[int, ...]:
        """Return the addresses of the chip; a 24C04 to 24C16 has several."""
        first = self.attributes.address()
        return tuple(range(first, first + at24.MODELS[self.attributes.chip].addresses))

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """Execute one command; see the class."""
        model = at24.MODELS[self.attributes.chip]
        match dict(command):
            case {"size": _, **rest} if not rest:
                return {"bytes": model.size, "page": model.page}
            case {"read": {"offset": offset, "count": count}, **rest} if not rest:
                start, length = self._range(offset, count)
                async with self.chip() as chip:
                    return {"hex": (await chip.read(start, length)).hex()}
            case {"write": {"offset": offset, "hex": str(text)}, **rest} if not rest:
                try:
                    data = bytes.fromhex(text)
                except ValueError as error:
                    raise MachineError(f"{text!r} is not hexadecimal: {error}", kind=ErrorKind.INVALID) from None
                return await self._write(offset, data)
            case {"write": {"offset": offset, "text": str(text)}, **rest} if not rest:
                return await self._write(offset, text.encode())
            case {"erase": {"offset": offset, "count": count}, **rest} if not rest:
                _, length = self._range(offset, count)
                return await self._write(offset, bytes([at24.BLANK]) * length)
        raise MachineError(
            f"{self.name} does not support the command {dict(command)!r}",
            kind=ErrorKind.INVALID,
            remedy=f"use {COMMANDS}",
        )

    async def _write(self, offset: object, data: bytes) -> Mapping[str, Any]:
        start, length = self._range(offset, len(data))
        async with self.chip() as chip:
            await chip.write(start, data)
        return {"written": length}

    def _range(self, offset: object, count: object) -> tuple[int, int]:
        """Convert offset and count, which may be floats, to integers. INVALID if not within the chip or too long."""
        size = at24.MODELS[self.attributes.chip].size
        for name, value in (("offset", offset), ("count", count)):
            if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value) or value < 0:
                raise MachineError(
                    f"{name} is {value!r}", kind=ErrorKind.INVALID, remedy="use a whole number, 0 or more"
                )
        assert isinstance(offset, int | float)
        assert isinstance(count, int | float)
        start, length = int(offset), int(count)
        if length > LONGEST or start + length > size:
            raise MachineError(
                f"{length} bytes from offset {start} are out of range",
                kind=ErrorKind.INVALID,
                remedy=f"the chip has {size} bytes, and a command transfers at most {LONGEST}",
            )
        return start, length
