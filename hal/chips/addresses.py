"""I2C addresses of common chips, from their data sheets. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

# Chips with a driver come first; errors list the others as possible alternatives.
CHIPS: Final[tuple[tuple[str, Iterable[int]], ...]] = (
    ("TMP102", range(0x48, 0x4C)),
    ("LM75", range(0x48, 0x50)),
    ("BME280", (0x76, 0x77)),
    ("BMP280", (0x76, 0x77)),
    ("SHT3x", (0x44, 0x45)),
    ("INA219", range(0x40, 0x50)),
    ("INA226", range(0x40, 0x50)),
    ("ADS1115", range(0x48, 0x4C)),
    ("ADS1015", range(0x48, 0x4C)),
    ("MPU6050", (0x68, 0x69)),
    ("PCA9685", (*range(0x40, 0x70), *range(0x71, 0x78))),  # 0x70 is its all-call address
    ("AT24", range(0x50, 0x58)),
    ("MCP23017", range(0x20, 0x28)),
    ("PCF8574", range(0x20, 0x28)),
    ("PCF8574A", range(0x38, 0x40)),
    ("PCF8591", range(0x48, 0x50)),
    ("SSD1306", (0x3C, 0x3D)),
    ("Si7021", (0x40,)),
    ("HTU21D", (0x40,)),
    ("VL53L0X", (0x29,)),
    ("BH1750", (0x23, 0x5C)),
    ("TSL2561", (0x29, 0x39, 0x49)),
    ("DS1307", (0x68,)),
    ("DS3231", (0x68,)),
    ("PCF8523", (0x68,)),
    ("AHT20", (0x38,)),
    ("BMP180", (0x77,)),
    ("MS5611", (0x76, 0x77)),
    ("TCA9548A", range(0x70, 0x78)),
    ("HT16K33", range(0x70, 0x78)),
    ("MCP4725", range(0x60, 0x68)),
    ("MAX17048", (0x36,)),
    ("HMC5883L", (0x1E,)),
    ("ADXL345", (0x1D, 0x53)),
    ("BNO055", (0x28, 0x29)),
)


def chips_at(address: int) -> tuple[str, ...]:
    """Return the chips that may be at `address`, those with a driver first."""
    return tuple(chip for chip, addresses in CHIPS if address in addresses)


def others_at(address: int, chip: str) -> str:
    """Return a hint about other chips than `chip` at `address`: `; 0x48 may also be LM75 or PCF8591`; "" if none."""
    others = [name for name in chips_at(address) if name != chip]
    return f"; 0x{address:02x} may also be {' or '.join(others[:6])}" if others else ""
