"""Simulated BME280 and BMP280 (Bosch BST-BME280-DS002 revision 1.6, BST-BMP280-DS001 revision 1.14).

Raw values are calculated from the quantities by inverting the integer formulas of the data sheet (section 4.2.3).
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import trio

from models.chips.common.simulated_registers import ByteRegisters

# Trimming values: T and P from BST-BMP280-DS001, section 3.12; H similar to those of a real chip, none of them 0.
T = (27504, 26435, -1000)
P = (36477, -10685, 3024, 2855, 140, -7, 15500, -14600, 6000)
H = (75, 370, 120, 313, 50, 30)
SAMPLES = (0, 1, 2, 4, 8, 16, 16, 16)  # number of samples by osrs


class Bme280Target(ByteRegisters):
    """A BME280, or with `humid=False` a BMP280, that measures the given quantities."""

    def __init__(
        self,
        temperature_c: float = 25.0,
        pressure_pa: float = 101325.0,
        relative_humidity_pct: float = 50.0,
        *,
        humid: bool = True,
        clock: Callable[[], float] = trio.current_time,
    ) -> None:
        self.temperature_c = temperature_c
        self.pressure_pa = pressure_pa
        self.relative_humidity_pct = relative_humidity_pct
        self.humid = humid
        self.slowness = 1.0  # up to 1.15 by the data sheet; more for a defective chip
        self._clock = clock
        self.power_cycle()

    def power_cycle(self) -> None:
        """Set the reset values; trimming values are available after 2 ms."""
        self.pointer = 0
        self._memory = bytearray(256)
        self._memory[0xD0] = 0x60 if self.humid else 0x58
        self._memory[0x88:0xA0] = struct.pack("<Hhh", *T) + struct.pack("<H8h", *P)
        if self.humid:
            self._memory[0xA1] = H[0]
            self._memory[0xE1:0xE8] = struct.pack(
                "<hBBBBb", H[1], H[2], H[3] >> 4 & 0xFF, H[3] & 15 | (H[4] & 15) << 4, H[4] >> 4 & 0xFF, H[5]
            )
        self._memory[0xF7:0xFF] = bytes([0x80, 0, 0, 0x80, 0, 0, 0x80, 0])
        self._ready = self._clock() + 0.002
        self._ctrl_hum = 0  # takes effect with the next write of ctrl_meas
        self._done: float | None = None

    def load(self, pointer: int) -> int:
        """Return a register, after updating data and status."""
        self._measure()
        if pointer == 0xF3:
            measuring = self._done is not None and self._memory[0xF4] & 3 != 3
            return (0x08 if measuring else 0) | (0x01 if self._clock() < self._ready else 0)
        if 0x88 <= pointer <= 0xA1 and self._clock() < self._ready:
            return 0
        if pointer >= 0xFD and not self.humid:
            return 0xFF if pointer == 0xFF else (0x80, 0x00)[pointer - 0xFD]
        return self._memory[pointer]

    def store(self, pointer: int, value: int) -> None:
        """Write one of the four writable registers, or reset the chip."""
        if pointer == 0xE0 and value == 0xB6:
            self.power_cycle()
        elif pointer == 0xF2 and self.humid:
            self._memory[0xF2] = value & 0x07
        elif pointer == 0xF4:
            self._measure()
            self._memory[0xF4] = value
            self._ctrl_hum = self._memory[0xF2]
            self._done = self._clock() + self.duration() if value & 3 else None
        elif pointer == 0xF5:
            self._memory[0xF5] = value & 0xFD

    def write(self, data: bytes) -> None:
        """Write pairs of register and value; the pointer is not incremented (section 6.2.1)."""
        if data:
            self.pointer = data[0]
            for register, value in zip(data[0::2], data[1::2], strict=False):
                self.store(register, value)

    def _samples(self) -> tuple[int, int, int]:
        control = self._memory[0xF4]
        return SAMPLES[control >> 5], SAMPLES[control >> 2 & 7], SAMPLES[self._ctrl_hum] if self.humid else 0

    def duration(self) -> float:
        """Return the typical seconds of a measurement with the current settings (section 9.1)."""
        t, p, h = self._samples()
        return self.slowness * (1 + 2 * t + (2 * p + 0.5 if p else 0) + (2 * h + 0.5 if h else 0)) / 1000

    def _measure(self) -> None:
        if self._done is None or self._clock() < self._done:
            return
        mode = self._memory[0xF4] & 3
        if mode == 3:
            self._done = self._clock() + self.duration()
        else:
            self._done = None
            self._memory[0xF4] &= ~3
        t, p, h = self._samples()
        raw_t = search(lambda raw: integer_temperature(raw)[0] / 100, self.temperature_c, 20) if t else 0x80000
        fine = integer_temperature(raw_t)[1]
        raw_p = search(lambda raw: -integer_pressure(raw, fine) / 256, -self.pressure_pa, 20) if p else 0x80000
        raw_h = search(lambda raw: integer_humidity(raw, fine) / 1024, self.relative_humidity_pct, 16) if h else 0x8000
        self._memory[0xF7:0xFA] = (raw_p << 4).to_bytes(3, "big")
        self._memory[0xFA:0xFD] = (raw_t << 4).to_bytes(3, "big")
        self._memory[0xFD:0xFF] = raw_h.to_bytes(2, "big")


def search(of: Callable[[int], float], target: float, bits: int) -> int:
    """Return the smallest raw value for which the increasing function `of` is at least `target`."""
    low, high = 0, (1 << bits) - 1
    while low < high:
        middle = (low + high) // 2
        if of(middle) < target:
            low = middle + 1
        else:
            high = middle
    return low


def integer_temperature(raw: int) -> tuple[int, int]:
    """Return hundredths of a degree and the fine temperature, by the 32-bit formula."""
    var1 = (((raw >> 3) - (T[0] << 1)) * T[1]) >> 11
    var2 = (((((raw >> 4) - T[0]) * ((raw >> 4) - T[0])) >> 12) * T[2]) >> 14
    fine = var1 + var2
    return (fine * 5 + 128) >> 8, fine


def integer_pressure(raw: int, fine: int) -> int:
    """Return pascal times 256, by the 64-bit formula."""
    var1 = fine - 128000
    var2 = var1 * var1 * P[5]
    var2 += (var1 * P[4]) << 17
    var2 += P[3] << 35
    var1 = ((var1 * var1 * P[2]) >> 8) + ((var1 * P[1]) << 12)
    var1 = (((1 << 47) + var1) * P[0]) >> 33
    p = (((1048576 - raw) << 31) - var2) * 3125 // var1
    var1 = (P[8] * (p >> 13) * (p >> 13)) >> 25
    var2 = (P[7] * p) >> 19
    return ((p + var1 + var2) >> 8) + (P[6] << 4)


def integer_humidity(raw: int, fine: int) -> int:
    """Return percent times 1024, by the 32-bit formula."""
    x = fine - 76800
    gain = ((((((x * H[5]) >> 10) * (((x * H[2]) >> 11) + 32768)) >> 10) + 2097152) * H[1] + 8192) >> 14
    x = ((((raw << 14) - (H[3] << 20) - (H[4] * x)) + 16384) >> 15) * gain
    x -= ((((x >> 15) * (x >> 15)) >> 7) * H[0]) >> 4
    return max(0, min(419430400, x)) >> 12
