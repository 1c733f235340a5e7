"""Tables and calibration of the data sheets of INA219 (SBOS448G) and INA226 (SBOS547A). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SAMPLES: Final = {1: 0b011, 2: 0b1001, 4: 0b1010, 8: 0b1011, 16: 0b1100, 32: 0b1101, 64: 0b1110, 128: 0b1111}
"""INA219: number of averaged samples and the bits for it, SBOS448G, table 5."""


AVERAGES: Final = {1: 0, 4: 1, 16: 2, 64: 3, 128: 4, 256: 5, 512: 6, 1024: 7}
"""INA226: number of averaged samples and the bits for it, SBOS547A, table 6."""


@dataclass(frozen=True, slots=True)
class InaChip:
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


INA219: Final = InaChip(
    "INA219", 0x399F, 0.04096, 10e-6, 4e-3, 3, 20, 0.32, 0xFFFE
)  # SBOS448G, sections 7.5, 8.5.1, 8.6
INA226: Final = InaChip(
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


def calibrate(model: InaChip, shunt_ohms: float, max_current: float) -> Calibration:
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
