"""Simulated power monitors INA219 (Texas Instruments SBOS448G) and INA226 (SBOS547A).

After the first conversion, a conversion ends just before each read.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

from models.chips.common.simulated_registers import WideRegisters

SAMPLES_219 = {8: 1, 9: 2, 10: 4, 11: 8, 12: 16, 13: 32, 14: 64, 15: 128}
TIME_219 = (84e-6, 148e-6, 276e-6, 532e-6)
TIME_226 = (140e-6, 204e-6, 332e-6, 588e-6, 1.1e-3, 2.116e-3, 4.156e-3, 8.244e-3)
SAMPLES_226 = (1, 4, 16, 64, 128, 256, 512, 1024)


class _Ina(WideRegisters):
    """A power monitor with `volts` at the load and `amperes` through the shunt of `shunt_ohms`."""

    RESET = 0

    def __init__(
        self,
        volts: float = 12.0,
        amperes: float = 0.0,
        *,
        shunt_ohms: float = 0.1,
        clock: Callable[[], float] = trio.current_time,
    ) -> None:
        self.volts = volts
        self.amperes = amperes
        self.shunt_ohms = shunt_ohms
        self.slowness = 1.0  # up to 1.1 by the data sheets
        self._clock = clock
        self.power_cycle()

    def power_cycle(self) -> None:
        """Set the reset values: measuring, not calibrated."""
        self.pointer = 0
        self._words = {0: self.RESET, 1: 0, 2: 0, 3: 0, 4: 0, 5: 0}
        self._overflow = False
        self._ready = self._clock() + self.cycle()

    def cycle(self) -> float:
        """Return the seconds between two results with the current settings."""
        raise NotImplementedError

    def _measure(self) -> None:
        """Update the data registers."""
        raise NotImplementedError

    def _settle(self) -> bool:
        if self._words[0] & 3 == 0 or self._clock() < self._ready:
            return False
        self._measure()
        return True

    def store(self, pointer: int, data: bytes) -> None:
        """Write configuration or calibration; bit 15 of the configuration resets the chip."""
        if len(data) < 2:
            return
        word = int.from_bytes(data[:2], "big")
        if pointer == 0 and word & 0x8000:
            self.power_cycle()
        elif pointer == 0:
            self._words[0] = self._configuration(word)
            self._ready = self._clock() + self.cycle()
        elif pointer == 5:
            self._words[5] = self._calibration(word)

    def _configuration(self, word: int) -> int:
        return word

    def _calibration(self, word: int) -> int:
        return word

    def _calculate(self, shunt: int, bus: int, current_divisor: int, power_divisor: int) -> None:
        """Calculate current and power with the chip's integer arithmetic; too large values overflow."""
        product = shunt * self._words[5]
        current = math.trunc(product / current_divisor)
        power = abs(current) * bus // power_divisor
        self._overflow = not -32768 <= current <= 32767 or power > 0xFFFF
        self._words[4] = max(-32768, min(32767, current)) & 0xFFFF
        self._words[3] = min(power, 0xFFFF)


class Ina219Target(_Ina):
    """An INA219."""

    RESET = 0x399F

    def _configuration(self, word: int) -> int:
        return word & 0x3FFF  # bit 14 has no meaning

    def _calibration(self, word: int) -> int:
        return word & 0xFFFE

    def cycle(self) -> float:
        """Return the seconds for shunt and bus, measured one after the other."""
        return self.slowness * sum(
            TIME_219[bits & 3] if bits < 8 else SAMPLES_219[bits] * 532e-6
            for bits in (self._words[0] >> 7 & 15, self._words[0] >> 3 & 15)
        )

    def _measure(self) -> None:
        config = self._words[0]
        limit = 4000 << (config >> 11 & 3)
        shunt = max(-limit, min(limit, round(self.amperes * self.shunt_ohms / 10e-6)))
        span = 8000 if config & 0x2000 else 4000  # of 32 V and 16 V at 4 mV
        bus = max(0, min(span, round(self.volts / 4e-3)))
        self._words[1] = shunt & 0xFFFF
        self._calculate(shunt, bus, 4096, 5000)
        self._words[2] = bus << 3 | 0b10 | (1 if self._overflow else 0)

    def load(self, pointer: int) -> bytes:
        """Return a register; reading the power clears CNVR until the next conversion."""
        self._settle()
        word = self._words.get(pointer, 0xFFFF)
        if pointer == 3:
            self._words[2] &= ~0b10
        return word.to_bytes(2, "big")


class Ina226Target(_Ina):
    """An INA226."""

    RESET = 0x4127

    def power_cycle(self) -> None:
        """Set the reset values, including mask and limit."""
        super().power_cycle()
        self._words |= {6: 0, 7: 0, 0xFE: 0x5449, 0xFF: 0x2260}

    def _configuration(self, word: int) -> int:
        return word & 0x0FFF | 0x4000

    def _calibration(self, word: int) -> int:
        return word & 0x7FFF

    def cycle(self) -> float:
        """Return the seconds for shunt and bus, measured one after the other."""
        config = self._words[0]
        return self.slowness * SAMPLES_226[config >> 9 & 7] * (TIME_226[config >> 6 & 7] + TIME_226[config >> 3 & 7])

    def _measure(self) -> None:
        shunt = max(-32768, min(32767, round(self.amperes * self.shunt_ohms / 2.5e-6)))
        bus = max(0, min(0x7FFF, round(self.volts / 1.25e-3)))
        self._words[1], self._words[2] = shunt & 0xFFFF, bus
        self._calculate(shunt, bus, 2048, 20000)

    def load(self, pointer: int) -> bytes:
        """Return a register; reading mask/enable clears the conversion-ready flag."""
        measured = self._settle()
        word = self._words.get(pointer, 0)
        if pointer == 6:
            word |= (8 if measured else 0) | (4 if self._overflow else 0)
        return word.to_bytes(2, "big")

    def store(self, pointer: int, data: bytes) -> None:
        """Write a register, including mask and limit."""
        if pointer in (6, 7) and len(data) >= 2:
            self._words[pointer] = int.from_bytes(data[:2], "big") & (0xFC03 if pointer == 6 else 0xFFFF)
        else:
            super().store(pointer, data)
