"""LM75 (SNOS808P) and TMP75 or TMP105 (SBOS288M, SBOS648), temperature sensors, from outside.

Continuous conversions are taken to end just before each read, so that a test sees what it has set.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

from hal.sim.chips.pointer import WideRegisters


class Lm75Target(WideRegisters):
    """`temperature_c` is what it feels; `bits` is 9 for an LM75, 11 for an LM75B, or 12 for those that can choose."""

    pointer_mask = 0b11

    def __init__(
        self, temperature_c: float = 25.0, *, bits: int = 9, clock: Callable[[], float] = trio.current_time
    ) -> None:
        self.temperature_c = temperature_c
        self.bits = bits
        self._clock = clock
        self.power_cycle()

    def power_cycle(self) -> None:
        """Power-up values of all registers; the first conversion begins."""
        self.pointer = 0
        self._config = 0
        self._limits = {2: 75 * 256, 3: 80 * 256}  # THYST 75 °C, TOS 80 °C
        self._result = 0
        self._ready: float | None = self._clock() + self._conversion()

    def _resolution(self) -> int:
        """Bits of a conversion now: R1 R0 where the chip has them."""
        return 9 + (self._config >> 5 & 3) if self.bits == 12 else self.bits

    def _conversion(self) -> float:
        """Seconds: 27.5 ms for 9 bits, doubling with each (SBOS288M, table 7-10); 100 ms where it is fixed."""
        return 0.0275 * 2 ** (self._resolution() - 9) if self.bits == 12 else 0.1

    def _convert(self) -> None:
        if self._ready is None or self._clock() < self._ready:
            return
        if self._config & 1:
            self._ready = None
        bits = self._resolution()
        per_degree = 2 ** (bits - 8)
        counts = math.floor(self.temperature_c * per_degree + 0.5)
        counts = max(-128 * per_degree, min(128 * per_degree - 1, counts))
        self._result = counts * 2 ** (16 - bits) % 0x10000

    def load(self, pointer: int) -> bytes:
        """Temperature, configuration, THYST, TOS."""
        if pointer == 0:
            self._convert()
            return self._result.to_bytes(2, "big")
        if pointer == 1:
            return bytes([self._config])
        return self._limits[pointer].to_bytes(2, "big")

    def store(self, pointer: int, data: bytes) -> None:
        """The temperature is read-only; limits have as many bits as the chip."""
        if pointer == 0:
            return
        if pointer != 1:
            unused = (1 << (16 - self.bits)) - 1
            old = self._limits[pointer].to_bytes(2, "big")
            self._limits[pointer] = int.from_bytes((data + old[len(data) :])[:2], "big") & ~unused
            return
        self._convert()
        was_shut_down = bool(self._config & 1)
        self._config = data[0] & (0x7F if self.bits == 12 else 0x1F)
        if was_shut_down != bool(self._config & 1) or data[0] & 0x81 == 0x81:
            self._ready = self._clock() + self._conversion()
