"""Attributes that `runtime.models.chips.common.device` reads."""

from __future__ import annotations

from hal.ports import FIRST_ADDRESS, LAST_ADDRESS
from schema import Attributes


def parse_address(value: int | str) -> int:
    """Parse a 7-bit address written as a number or as text (`0x48`). ValueError if it is invalid."""
    if isinstance(value, str):
        try:
            value = int(value, 0)
        except ValueError:
            raise ValueError(f'i2c_address {value!r} is not a number: write it like "0x48"') from None
    if not FIRST_ADDRESS <= value <= LAST_ADDRESS:
        raise ValueError(f"i2c_address 0x{value:02x} is not between 0x{FIRST_ADDRESS:02x} and 0x{LAST_ADDRESS:02x}")
    return value


class I2cAttributes(Attributes, kw_only=True, frozen=True):
    """Attributes of every chip on an I2C bus. Each model repeats the fields with its own defaults."""

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str  # 7-bit address, a number or text like "0x48"

    def __post_init__(self) -> None:
        parse_address(self.i2c_address)

    def address(self) -> int:
        """Return the address as a number."""
        return parse_address(self.i2c_address)
