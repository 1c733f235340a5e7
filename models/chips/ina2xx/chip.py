"""INA219 and INA226 on I2C: voltage, current through a shunt, and power.

Texas Instruments SBOS448G (INA219, December 2015) and SBOS547A (INA226, August 2015).
"""

from __future__ import annotations

from typing import ClassVar, Final

import trio

from hal import Registers
from models.chips.common.chip import Chip
from models.chips.ina2xx.datasheet import AVERAGES, GAINS, INA219, INA226, SAMPLES, InaChip, calibrate
from schema import ErrorKind, MachineError

CONFIGURATION: Final = 0x00  # SBOS448G, table 2; SBOS547A, table 4
SHUNT: Final = 0x01
BUS: Final = 0x02
POWER: Final = 0x03
CURRENT: Final = 0x04
CALIBRATION: Final = 0x05
MASK: Final = 0x06  # INA226
MANUFACTURER: Final = 0xFE  # INA226
DIE: Final = 0xFF  # INA226
RESET: Final = 0x8000  # written to the configuration
INA226_MANUFACTURER: Final = 0x5449  # "TI"; SBOS547A, table 16
INA226_DIE: Final = 0x2260  # the last four bits are the revision; table 17


def ina219_configuration(full_scale: float, samples: int) -> int:
    """Return the configuration for continuous measurement with 32 V range and the finest gain for `full_scale` volts.

    See SBOS448G, section 8.6.2.
    """
    gain = next(bits for volts, bits in GAINS if full_scale <= volts * (1 + 1e-9))
    return 1 << 13 | gain << 11 | SAMPLES[samples] << 7 | SAMPLES[samples] << 3 | 0b111


def ina226_configuration(samples: int) -> int:
    """Return the configuration for continuous measurement, 1.1 ms per sample; bit 14 reads 1. SBOS547A, 7.6.1."""
    return 1 << 14 | AVERAGES[samples] << 9 | 0b100 << 6 | 0b100 << 3 | 0b111


class Ina2xx(Chip):
    """The common part of both chips. The calibration register is 0 after power-up, which shows a loss of power."""

    model: ClassVar[InaChip]

    def __init__(self, registers: Registers, shunt_ohms: float, max_current: float, samples: int) -> None:
        super().__init__(registers)
        self.title = self.model.title
        self.samples = samples
        self.full_scale = shunt_ohms * max_current
        self.calibration = calibrate(self.model, shunt_ohms, max_current)

    @property
    def settings(self) -> int:
        """The configuration register."""
        raise NotImplementedError

    @property
    def conversion(self) -> float:
        """Seconds until shunt and bus are measured with these settings."""
        raise NotImplementedError

    async def overflow(self) -> bool:
        """Return whether the chip could not calculate current or power because they were too large."""
        raise NotImplementedError

    async def configure(self) -> None:
        """Start continuous measurement and return when the first values are available."""
        for register, name, value in (
            (CONFIGURATION, "the configuration", self.settings),
            (CALIBRATION, "the calibration", self.calibration.register),
        ):
            await self.registers.write_int(register, value, 2)
            reads = await self.registers.read_int(register, 2)
            if reads != value:
                raise self.not_stored(name, value, reads)
        await trio.sleep(self.conversion)

    async def configured(self) -> bool:
        """Return whether the chip still has its calibration."""
        return await self.registers.read_int(CALIBRATION, 2) == self.calibration.register

    async def bus_voltage(self) -> float:
        """Return the volts between IN- (or VBUS) and ground."""
        return (await self.registers.read_int(BUS, 2) >> self.model.bus_shift) * self.model.bus_step

    async def shunt_voltage(self) -> float:
        """Return the volts across the shunt; negative for reverse current."""
        return await self.registers.read_int(SHUNT, 2, signed=True) * self.model.shunt_step

    async def current(self) -> float:
        """Return the current in amperes. MachineError (precondition) if it exceeds the configured range."""
        await self._within_range()
        return await self.registers.read_int(CURRENT, 2, signed=True) * self.calibration.current_step

    async def power(self) -> float:
        """Return the power in watts, never negative. MachineError (precondition) if the current exceeds the range."""
        await self._within_range()
        return await self.registers.read_int(POWER, 2) * self.calibration.power_step

    async def _within_range(self) -> None:
        clipped = abs(await self.shunt_voltage()) >= self.shunt_limit() * (1 - 1e-9)
        if clipped or await self.overflow():
            raise MachineError(
                f"{self}: the current is more than {self.calibration.current_step * 32768:.3g} A",
                kind=ErrorKind.PRECONDITION,
                remedy="increase max_current_a, or use a smaller shunt",
            )

    def shunt_limit(self) -> float:
        """Return the volts across the shunt at which the chip saturates."""
        return 32767 * self.model.shunt_step


class Ina219(Ina2xx):
    """An INA219 (SBOS448G)."""

    model = INA219

    async def identify(self) -> None:
        """Check the configuration after a reset: the chip has no identity register, but a distinctive reset value."""
        await self.registers.write_int(CONFIGURATION, RESET, 2)
        value = await self.registers.read_int(CONFIGURATION, 2)
        if value != INA219.reset:
            meaning = "an INA226 or INA230" if value == INA226.reset else ""
            raise self.wrong_chip(f"after a reset its configuration reads 0x{value:04x}", meaning)

    @property
    def settings(self) -> int:
        """The configuration register."""
        return ina219_configuration(self.full_scale, self.samples)

    @property
    def conversion(self) -> float:
        """Seconds for shunt and bus one after the other: 532 µs per sample, at most 586 µs; section 7.5, table 5."""
        return 2 * 586e-6 * self.samples

    async def overflow(self) -> bool:
        """Return OVF of the bus voltage register, section 8.6.3.2."""
        return bool(await self.registers.read_int(BUS, 2) & 1)

    def shunt_limit(self) -> float:
        """Return the full scale of the selected gain."""
        return next(volts for volts, _ in GAINS if self.full_scale <= volts * (1 + 1e-9))


class Ina226(Ina2xx):
    """An INA226 (SBOS547A)."""

    model = INA226

    async def identify(self) -> None:
        """Check the manufacturer and die registers."""
        manufacturer = await self.registers.read_int(MANUFACTURER, 2)
        die = await self.registers.read_int(DIE, 2)
        if manufacturer != INA226_MANUFACTURER or die & 0xFFF0 != INA226_DIE:
            raise self.wrong_chip(f"its identity reads 0x{manufacturer:04x} 0x{die:04x}")

    @property
    def settings(self) -> int:
        """The configuration register."""
        return ina226_configuration(self.samples)

    @property
    def conversion(self) -> float:
        """Seconds for shunt and bus one after the other: 1.1 ms per sample, at most 1.21 ms; section 6.5."""
        return 2 * 1.21e-3 * self.samples

    async def overflow(self) -> bool:
        """Return OVF of the mask/enable register, section 7.6.7."""
        return bool(await self.registers.read_int(MASK, 2) & 4)
