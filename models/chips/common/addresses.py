"""Which chips may be at an I2C address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

OTHERS: Final[Mapping[str, Iterable[int]]] = {
    "MCP23017": range(0x20, 0x28),
    "PCF8574": range(0x20, 0x28),
    "PCF8574A": range(0x38, 0x40),
    "PCF8591": range(0x48, 0x50),
    "SSD1306": (0x3C, 0x3D),
    "Si7021": (0x40,),
    "HTU21D": (0x40,),
    "VL53L0X": (0x29,),
    "BH1750": (0x23, 0x5C),
    "TSL2561": (0x29, 0x39, 0x49),
    "DS1307": (0x68,),
    "DS3231": (0x68,),
    "PCF8523": (0x68,),
    "AHT20": (0x38,),
    "BMP180": (0x77,),
    "MS5611": (0x76, 0x77),
    "TCA9548A": range(0x70, 0x78),
    "HT16K33": range(0x70, 0x78),
    "MCP4725": range(0x60, 0x68),
    "MAX17048": (0x36,),
    "HMC5883L": (0x1E,),
    "ADXL345": (0x1D, 0x53),
    "BNO055": (0x28, 0x29),
}
"""Chips without a driver here, from their data sheets; errors name them as possible alternatives."""


def chips_at(address: int) -> tuple[str, ...]:
    """Return the chips that may be at `address`, those with a driver first."""
    return tuple(chip for chip, places in _all().items() if address in places)


def address_count(chip: str) -> int:
    """Return the number of addresses that a chip can have; 0 if it is not known."""
    return len(tuple(_all().get(chip, ())))


def _all() -> Mapping[str, Iterable[int]]:
    from models.table import CHIPS  # generated from the chips, so they must not need it when they are imported

    return {**CHIPS, **OTHERS}


def others_at(address: int, chip: str) -> str:
    """Return a hint about other chips than `chip` at `address`: `; 0x48 may also be LM75 or PCF8591`; "" if none."""
    others = [name for name in chips_at(address) if name != chip]
    return f"; 0x{address:02x} may also be {' or '.join(others[:6])}" if others else ""
