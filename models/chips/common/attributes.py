"""Attributes of `common`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final

from schema import Attributes

FIRST_ADDRESS: Final = 0x08  # lower ones are reserved: UM10204, table 4
LAST_ADDRESS: Final = 0x77


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

    CHIPS: ClassVar[Mapping[str, Iterable[int]]] = {}
    """The chips that the model drives, and the addresses that each can have, from its data sheet."""
    SUGGESTED: ClassVar[int] = 0
    """At an address that several chips can have, those with a larger number are suggested first."""

    i2c_bus: str  # number (1), path (/dev/i2c-1) or adapter name of the bus
    i2c_address: int | str  # 7-bit address, a number or text like "0x48"

    def __post_init__(self) -> None:
        parse_address(self.i2c_address)

    def address(self) -> int:
        """Return the address as a number."""
        return parse_address(self.i2c_address)
