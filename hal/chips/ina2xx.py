"""INA219 and INA226 on I2C: voltage, current through a shunt, and power.

Texas Instruments SBOS448G (INA219, December 2015) and SBOS547A (INA226, August 2015).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import trio

from hal.chips.chip import Chip
from hal.registers import Registers
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

SAMPLES: Final = {1: 0b011, 2: 0b1001, 4: 0b1010, 8: 0b1011, 16: 0b1100, 32: 0b1101, 64: 0b1110, 128: 0b1111}
"""INA219: number of averaged samples and the bits for it, SBOS448G, table 5."""
AVERAGES: Final = {1: 0, 4: 1, 16: 2, 64: 3, 128: 4, 256: 5, 512: 6, 1024: 7}
"""INA226: number of averaged samples and the bits for it, SBOS547A, table 6."""


@dataclass(frozen=True, slots=True)
class Model:
    """A chip: the scale of its registers and the constants of its calibration."""

    title: str
    reset: int  # power-on value of the configuration
    scale: float  # calibration = scale / (amperes of one count * ohms): equation 1 of both
    shunt_step: float  # volts of one count
    bus_step: float  # volts of one count
    bus_shift: int  # bits below the bus voltage in its register
    power_factor: int  # watts of one count of power / amperes of one count of current
    shunt_full_scale: float  # volts
    calibration_bits: int  # writable bits of the calibration register


INA219: Final = Model("INA219", 0x399F, 0.04096, 10e-6, 4e-3, 3, 20, 0.32, 0xFFFE)  # SBOS448G, sections 7.5, 8.5.1, 8.6
INA226: Final = Model(
    "INA226", 0x4127, 0.00512, 2.5e-6, 1.25e-3, 0, 25, 0.08192, 0x7FFF
)  # SBOS547A, sections 6.5, 7.5, 7.6

# INA219: volts across the shunt at full scale and the bits PG, SBOS448G, table 4.
GAINS: Final = ((0.04, 0), (0.08, 1), (0.16, 2), (0.32, 3))


@dataclass(frozen=True, slots=True)
class Calibration:
    """The value of the calibration register, and the resulting amperes and watts of one count."""

    register: int
    current_step: float
    power_step: float


def calibrate(model: Model, shunt_ohms: float, max_current: float) -> Calibration:
    """Calibrate for a shunt and the largest expected current: SBOS448G, equations 1 to 3; SBOS547A, equations 1 to 3.

    ValueError if the shunt voltage would exceed the chip's full scale, or the value the register.
    """
    if max_current * shunt_ohms > model.shunt_full_scale * (1 + 1e-9):
        raise ValueError(
            f"{max_current:g} A through {shunt_ohms:g} ohms are {max_current * shunt_ohms:g} V, but the {model.title} "
            f"measures at most {model.shunt_full_scale:g} V, that is {model.shunt_full_scale / shunt_ohms:g} A"
        )
    ideal = model.scale / (max_current / 32768 * shunt_ohms)
    register = int(ideal) & model.calibration_bits if ideal < model.calibration_bits + 1 else 0
    if register == 0:
        raise ValueError(
            f"{max_current:g} A through {shunt_ohms:g} ohms cannot be calibrated: {ideal:g} does not fit into the "
            f"register; use {model.scale * 32768 / model.calibration_bits / shunt_ohms:g} A or more"
        )
    current_step = model.scale / (register * shunt_ohms)
    return Calibration(register, current_step, current_step * model.power_factor)


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

    model: ClassVar[Model]

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
