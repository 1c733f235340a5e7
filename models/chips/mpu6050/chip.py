"""MPU-6050 and the register-compatible MPU-6500 and MPU-9250: gyroscope and accelerometer on I2C.

InvenSense RM-MPU-6000A-00 revision 4.2 (register map), PS-MPU-6000A-00 revision 3.4 (specification); RM-MPU-6500A-00
revision 2.1; RM-MPU-9250A-00 revision 1.6. The magnetometer of an MPU-9250 is not used.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, TypeAlias

import trio

from hal import Fault, HalError, Registers
from models.chips.common.chip import Chip

Axes: TypeAlias = tuple[float, float, float]

RATE_DIVIDER: Final = 0x19  # RM, section 3; then CONFIG, GYRO_CONFIG and ACCEL_CONFIG
DATA: Final = 0x3B  # 14 bytes: acceleration, temperature, rotation, as signed words
POWER: Final = 0x6B
WHO_AM_I: Final = 0x75
DEVICE_RESET: Final = 0x80  # section 4.28
CLOCK_GYRO_X: Final = 0x01  # not sleeping, clock from the gyroscope as the register map recommends
FILTER: Final = 3  # DLPF_CFG: 44 Hz of the accelerometer, 42 Hz of the gyroscope; section 4.3
DIVIDER: Final = 4  # 1 kHz / (1 + 4) = 200 measurements a second; section 4.2
RESET_TIME: Final = 0.1  # s, section 4.28 and application notes on the reset of all three chips
START_TIME: Final = 0.035 + 3 * 0.0048  # s, gyroscope start-up (PS section 6.1: 30 ms; 35 ms MPU-6500), filter delay
GRAVITY: Final = 9.80665  # m/s² of 1 g, standard gravity (ISO 80000-3)

GYRO_RANGES: Final = {250: 0, 500: 1, 1000: 2, 2000: 3}  # degrees/s at full scale, section 4.4
ACCEL_RANGES: Final = {2: 0, 4: 1, 8: 2, 16: 3}  # g at full scale, section 4.5
# Counts for a degree/s and for a g: PS, sections 6.1 and 6.2 ("sensitivity scale factor").
GYRO_SCALE: Final = {250: 131.0, 500: 65.5, 1000: 32.8, 2000: 16.4}
ACCEL_SCALE: Final = {2: 16384.0, 4: 8192.0, 8: 4096.0, 16: 2048.0}


@dataclass(frozen=True, slots=True)
class Mpu6050Variant:
    """A chip, identified by WHO_AM_I: counts per degree Celsius, and the temperature at count 0."""

    title: str
    per_degree: float
    zero: float


VARIANTS: Final = {
    0x68: Mpu6050Variant("MPU6050", 340.0, 36.53),  # RM-MPU-6000A, section 4.18
    0x70: Mpu6050Variant("MPU6500", 333.87, 21.0),  # PS-MPU-6500A, section 3.4.2: room temperature offset 0
    0x71: Mpu6050Variant("MPU9250", 333.87, 21.0),  # PS-MPU-9250A, section 3.4.2
    0x73: Mpu6050Variant("MPU9255", 333.87, 21.0),  # PS-MPU-9255, as MPU-9250
}
OTHER_CHIPS: Final = {
    0x12: "an ICM-20602",
    0x19: "an MPU-6886",
    0x98: "an ICM-20689",
    0xAF: "an ICM-20608",
    0xEA: "an ICM-20948, whose registers are different",
}


@dataclass(frozen=True, slots=True)
class Motion:
    """A measurement: m/s² along x, y and z, degrees Celsius of the chip, and degrees/s about x, y and z."""

    acceleration: Axes
    temperature: float
    rotation: Axes


def motion_of(data: bytes, gyro_range: int, accel_range: int, variant: Mpu6050Variant) -> Motion:
    """Decode the 14 bytes from DATA."""
    ax, ay, az, t, gx, gy, gz = struct.unpack(">7h", data)
    per_g, per_dps = ACCEL_SCALE[accel_range] / GRAVITY, GYRO_SCALE[gyro_range]
    return Motion(
        (ax / per_g, ay / per_g, az / per_g),
        t / variant.per_degree + variant.zero,
        (gx / per_dps, gy / per_dps, gz / per_dps),
    )


class Mpu6050(Chip):
    """An MPU-6050 or a variant. It sleeps with other settings after power-up, which shows a loss of power."""

    title = "MPU6050"

    def __init__(self, registers: Registers, gyro_range: int, accel_range: int) -> None:
        super().__init__(registers)
        self.gyro_range = gyro_range
        self.accel_range = accel_range
        self.variant = VARIANTS[0x68]

    @property
    def settings(self) -> bytes:
        """The values of the four registers for divider, filter and both ranges."""
        return bytes([DIVIDER, FILTER, GYRO_RANGES[self.gyro_range] << 3, ACCEL_RANGES[self.accel_range] << 3])

    async def identify(self) -> None:
        """Check WHO_AM_I, which also identifies the variant."""
        identity = await self.registers.read_int(WHO_AM_I)
        if identity not in VARIANTS:
            raise self.wrong_chip(f"WHO_AM_I reads 0x{identity:02x}", OTHER_CHIPS.get(identity, ""))
        self.variant = VARIANTS[identity]
        self.title = self.variant.title

    async def configure(self) -> None:
        """Reset the chip, wake it up and start 200 measurements per second."""
        await self.registers.write_int(POWER, DEVICE_RESET)
        await trio.sleep(RESET_TIME)
        await self.registers.write_int(POWER, CLOCK_GYRO_X)
        await self.registers.write(RATE_DIVIDER, self.settings)
        reads = await self.registers.read(RATE_DIVIDER, 4)
        if reads != self.settings:
            wrote = int.from_bytes(self.settings, "big")
            raise self.not_stored("the registers from 0x19 on", wrote, int.from_bytes(reads, "big"), 4)
        await trio.sleep(START_TIME)

    async def configured(self) -> bool:
        """Return whether the settings are unchanged; all four registers are 0 after power-up."""
        return await self.registers.read(RATE_DIVIDER, 4) == self.settings

    async def measure(self) -> Motion:
        """Return the newest measurement, all values from one moment. HalError (bus) if no chip drives the bus."""
        data = await self.registers.read(DATA, 14)
        if data == b"\xff" * 14:
            raise HalError(f"{self} returns only ones", Fault.BUS, remedy="check wiring and power")
        return motion_of(data, self.gyro_range, self.accel_range, self.variant)
