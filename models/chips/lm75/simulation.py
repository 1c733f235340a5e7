"""Simulated temperature sensors LM75 (SNOS808P) and TMP75 or TMP105 (SBOS288M, SBOS648).

A continuous conversion ends just before each read, so that a test reads the value that it has set.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

from models.chips.common.simulated_registers import WideRegisters


class Lm75Target(WideRegisters):
    """A sensor at `temperature_c`; `bits` is 9 for an LM75, 11 for an LM75B, 12 for configurable ones."""

    pointer_mask = 0b11

    def __init__(
        self, temperature_c: float = 25.0, *, bits: int = 9, clock: Callable[[], float] = trio.current_time
    ) -> None:
        self.temperature_c = temperature_c
        self.bits = bits
        self._clock = clock
        self.power_cycle()

    def power_cycle(self) -> None:
        """Set the power-up values of all registers and start the first conversion."""
        self.pointer = 0
        self._config = 0
        self._limits = {2: 75 * 256, 3: 80 * 256}  # THYST 75 °C, TOS 80 °C
        self._result = 0
        self._ready: float | None = self._clock() + self._conversion()

    def _resolution(self) -> int:
        """Return the current bits of a conversion, by R1 R0 if the chip has them."""
        return 9 + (self._config >> 5 & 3) if self.bits == 12 else self.bits

    def _conversion(self) -> float:
        """Return the time of a conversion: 27.5 ms, doubled for each bit above 9 (SBOS288M, table 7-10), or 100 ms."""
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
        """Return a register: temperature, configuration, THYST or TOS."""
        if pointer == 0:
            self._convert()
            return self._result.to_bytes(2, "big")
        if pointer == 1:
            return bytes([self._config])
        return self._limits[pointer].to_bytes(2, "big")

    def store(self, pointer: int, data: bytes) -> None:
        """Write a register, except the read-only temperature; limits have as many bits as the chip."""
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
