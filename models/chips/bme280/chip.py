"""BME280 (temperature, pressure, humidity) and BMP280 (without humidity) on I2C.

Bosch BST-BME280-DS002 revision 1.6 (September 2018) and BST-BMP280-DS001 revision 1.14 (May 2015), which has the same
registers up to 0xFC.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import trio

from hal import Fault, HalError, Registers
from models.chips.bme280.compensation import Trimming, humidity, pressure, temperature
from models.chips.common.chip import Chip

CHIP_ID: Final = 0xD0  # section 5.3, table 18
CTRL_HUM: Final = 0xF2
STATUS: Final = 0xF3
CTRL_MEAS: Final = 0xF4
CONFIG: Final = 0xF5
DATA: Final = 0xF7  # pressure, temperature, humidity: 3, 3 and 2 bytes
TRIMMING: Final = 0x88  # section 4.2.2, table 16
TRIMMING_H1: Final = 0xA1
TRIMMING_H: Final = 0xE1
BME280_ID: Final = 0x60  # section 5.4.1
BMP280_IDS: Final = (0x58, 0x56, 0x57)  # DS001, section 4.3.1; 0x56 and 0x57 are samples
OTHER_CHIPS: Final = {0x55: "a BMP180", 0x61: "a BME680 or BME688", 0x50: "a BMP388", 0x60: "a BME280"}
COPYING: Final = 0x01  # status im_update: trimming values are being copied
MEASURING: Final = 0x08
FORCED: Final = 0b01  # mode: one measurement, then sleep (section 3.3.3)
START_UP: Final = 0.002  # s, table 1
NOT_MEASURED: Final = (0x80000, 0xFFFFF)  # section 5.4.7: value of a skipped measurement; value of an idle bus
OVERSAMPLING: Final = {1: 1, 2: 2, 4: 3, 8: 4, 16: 5}  # section 5.4.3
MAX_POLLS: Final = 8  # reads of the status until the chip counts as hung


@dataclass(frozen=True, slots=True)
class Weather:
    """A measurement: degrees Celsius, pascal, and percent of relative humidity if the chip measures it."""

    temperature: float
    pressure: float
    humidity: float | None


def measuring_time(oversampling: int, *, humid: bool) -> float:
    """Return the maximum duration of a measurement in seconds, all quantities oversampled equally; section 9.1."""
    milliseconds = 1.25 + 2.3 * oversampling + (2.3 * oversampling + 0.575)
    return (milliseconds + (2.3 * oversampling + 0.575 if humid else 0.0)) / 1000


class Bme280(Chip):
    """A BME280 or BMP280. Each measurement writes all settings, so the chip works again after a loss of power."""

    title = "BME280 or BMP280"

    def __init__(self, registers: Registers, oversampling: int = 1) -> None:
        super().__init__(registers)
        self.oversampling = oversampling
        self.humid = True
        self._trimming: Trimming | None = None

    async def identify(self) -> None:
        """Check the chip id, which also shows whether the chip measures humidity."""
        chip_id = await self.registers.read_int(CHIP_ID)
        if chip_id != BME280_ID and chip_id not in BMP280_IDS:
            raise self.wrong_chip(f"its identity reads 0x{chip_id:02x}", OTHER_CHIPS.get(chip_id, ""))
        self.humid = chip_id == BME280_ID
        self.title = "BME280" if self.humid else "BMP280"

    async def configure(self) -> None:
        """Read the trimming values of the chip as soon as they are available."""
        for _ in range(MAX_POLLS):
            if not await self.registers.read_int(STATUS) & COPYING:
                break
            await trio.sleep(START_UP)
        else:
            raise HalError(f"{self} does not finish its reset", Fault.TIMEOUT)
        humid = b""
        if self.humid:
            humid = await self.registers.read(TRIMMING_H1, 1) + await self.registers.read(TRIMMING_H, 7)
        trimming = Trimming.parse(await self.registers.read(TRIMMING, 24), humid)
        if trimming.t1 in (0, 0xFFFF) or trimming.p1 in (0, 0xFFFF):
            raise HalError(f"{self}: its trimming values are empty", Fault.BUS)
        self._trimming = trimming

    async def measure(self) -> Weather:
        """Measure once. HalError with Fault.TIMEOUT if it does not finish, with Fault.BUS if there is no result."""
        if self._trimming is None:
            raise RuntimeError("configure the chip first")
        bits = OVERSAMPLING[self.oversampling]
        if self.humid:
            await self.registers.write_int(CTRL_HUM, bits)
        await self.registers.write_int(CONFIG, 0)  # no filter
        await self.registers.write_int(CTRL_MEAS, bits << 5 | bits << 2 | FORCED)
        await trio.sleep(measuring_time(self.oversampling, humid=self.humid))
        for _ in range(MAX_POLLS):
            if not await self.registers.read_int(STATUS) & MEASURING:
                break
        else:
            raise HalError(f"{self} does not finish its measurement", Fault.TIMEOUT)
        data = await self.registers.read(DATA, 8 if self.humid else 6)
        raw_pressure, raw_temperature = int.from_bytes(data[0:3], "big") >> 4, int.from_bytes(data[3:6], "big") >> 4
        if raw_pressure in NOT_MEASURED or raw_temperature in NOT_MEASURED:
            raise HalError(
                f"{self} has not measured: pressure 0x{raw_pressure:05x}, temperature 0x{raw_temperature:05x}",
                Fault.BUS,
                remedy="check its power",
            )
        celsius, fine = temperature(raw_temperature, self._trimming)
        return Weather(
            celsius,
            pressure(raw_pressure, fine, self._trimming),
            humidity(int.from_bytes(data[6:8], "big"), fine, self._trimming) if self.humid else None,
        )
