"""Simulated gyroscopes and accelerometers MPU-6050, MPU-6500 and MPU-9250.

InvenSense RM-MPU-6000A-00 revision 4.2, RM-MPU-6500A-00 revision 2.1, RM-MPU-9250A-00 revision 1.6.

A measurement ends just before each read.
"""

from __future__ import annotations

import struct

from models.chips.common.simulated_registers import ByteRegisters

FULL_TURN = (250, 500, 1000, 2000)  # degrees/s for 32768 counts
FULL_PULL = (2, 4, 8, 16)  # g for 32768 counts


class Mpu6050Target(ByteRegisters):
    """A chip with `acceleration` (m/s²) and `rotation` (degrees/s) as triples x, y, z, and its own `temperature_c`.

    `who_am_i` is 0x68 for an MPU-6050, 0x70 for an MPU-6500 and 0x71 for an MPU-9250.
    """

    def __init__(self, *, who_am_i: int = 0x68) -> None:
        self.acceleration = (0.0, 0.0, 9.80665)
        self.rotation = (0.0, 0.0, 0.0)
        self.temperature_c = 25.0
        self.who_am_i = who_am_i
        self.power_cycle()

    def power_cycle(self) -> None:
        """Set the reset values; an MPU-6050 sleeps, the later chips are awake."""
        self.pointer = 0
        self._memory = bytearray(128)
        self._memory[0x6B] = 0x40 if self.who_am_i == 0x68 else 0x01
        self._memory[0x75] = self.who_am_i

    @property
    def asleep(self) -> bool:
        """Whether the chip sleeps and does not measure."""
        return bool(self._memory[0x6B] & 0x40)

    def _measure(self) -> None:
        if self.asleep:
            return
        turn = FULL_TURN[self._memory[0x1B] >> 3 & 3]
        pull = FULL_PULL[self._memory[0x1C] >> 3 & 3] * 9.80665
        zero, per_degree = (36.53, 340.0) if self.who_am_i == 0x68 else (21.0, 333.87)
        off = self._memory[0x6C]  # PWR_MGMT_2: standby of single axes
        values = [
            *(0 if off >> (5 - axis) & 1 else a / pull * 32768 for axis, a in enumerate(self.acceleration)),
            (self.temperature_c - zero) * per_degree,
            *(0 if off >> (2 - axis) & 1 else w / turn * 32768 for axis, w in enumerate(self.rotation)),
        ]
        words = [max(-32768, min(32767, round(value))) for value in values]
        self._memory[0x3B:0x49] = struct.pack(">7h", *words)
        self._memory[0x3A] |= 0x01  # data ready

    def read(self, n: int) -> bytes:
        """Read from the pointer; all data of a read are from the same moment."""
        if 0x3A <= self.pointer <= 0x48:
            self._measure()
        return super().read(n)

    def load(self, pointer: int) -> int:
        """Return a register; reading the interrupt status clears it."""
        if pointer == 0x3A:
            status, self._memory[0x3A] = self._memory[0x3A], 0
            return status
        if pointer == 0x74:
            return 0  # FIFO, empty
        return self._memory[pointer & 0x7F]

    def after(self, pointer: int) -> int:
        """Return the pointer after an access; it is not incremented for the FIFO."""
        return pointer if pointer == 0x74 else (pointer + 1) & 0x7F

    def store(self, pointer: int, value: int) -> None:
        """Write a register, except data and identity, which are read-only; bit 7 of PWR_MGMT_1 resets the chip."""
        if pointer == 0x6B and value & 0x80:
            pointer_before = self.pointer
            self.power_cycle()
            self.pointer = pointer_before
        elif not 0x3A <= pointer <= 0x60 and pointer not in (0x72, 0x73, 0x74, 0x75):
            self._memory[pointer & 0x7F] = value
