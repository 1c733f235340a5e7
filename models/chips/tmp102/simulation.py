"""Simulated temperature sensor TMP102 (Texas Instruments SBOS397H, December 2018).

A continuous conversion ends just before each read, so that a test reads the value that it has set.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

from models.chips.common.simulated_registers import WideRegisters


class Tmp102Target(WideRegisters):
    """A TMP102 at `temperature_c`; `alert` is its pin, True when the limit is exceeded (comparator mode)."""

    pointer_mask = 0b11  # only P1 and P0 of the pointer byte are used

    def __init__(self, temperature_c: float = 25.0, *, clock: Callable[[], float] = trio.current_time) -> None:
        self.temperature_c = temperature_c
        self._clock = clock
        self.power_cycle()

    def power_cycle(self) -> None:
        """Set the power-up values of all registers and start the first conversion."""
        self.pointer = 0
        self._config = 0b0110_0000_1010_0000
        self._limits = {0b10: 75 * 256, 0b11: 80 * 256}  # THYST/TLOW 75 °C, TOS/THIGH 80 °C, as 12 bits left-justified
        self._result = bytes(2)
        self._ready: float | None = self._clock() + 0.026

    @property
    def alert(self) -> bool:
        """Whether the last conversion was above THIGH."""
        self._convert()
        extended = bool(self._result[1] & 1)
        counts = int.from_bytes(self._result, "big", signed=True) >> (3 if extended else 4)
        limit = int.from_bytes(self._limits[0b11].to_bytes(2, "big"), "big", signed=True)
        return counts > limit >> (3 if self._config & 0x10 else 4)

    def _convert(self) -> None:
        """Store the result of a conversion that has ended."""
        if self._ready is None or self._clock() < self._ready:
            return
        if self._config & 0x0100:  # shutdown: that was a one-shot conversion, or the last one
            self._ready = None
        extended = bool(self._config & 0x0010)
        counts = math.floor(self.temperature_c / 0.0625 + 0.5)
        if extended:
            counts = max(-0x1000, min(0x0FFF, counts))
            word = (counts & 0x1FFF) << 3 | 1
        else:
            counts = max(-0x800, min(0x7FF, counts))
            word = (counts & 0x0FFF) << 4
        self._result = bytes([word >> 8, word & 0xFF])

    def load(self, pointer: int) -> bytes:
        """Return a register: temperature, configuration, TLOW or THIGH."""
        if pointer == 0b00:
            self._convert()
            return self._result
        if pointer == 0b01:
            word = self._config & ~0x8020
            if self._config & 0x0100:  # in shutdown OS reads 0 during a conversion and 1 after it
                self._convert()
                word |= 0x8000 if self._ready is None else 0
            active = bool(self._config & 0x0400)  # POL
            return (word | (0x0020 if self.alert == active else 0)).to_bytes(2, "big")
        return self._limits[pointer].to_bytes(2, "big")

    def store(self, pointer: int, data: bytes) -> None:
        """Write a register byte by byte, except the read-only temperature."""
        if pointer == 0b00:
            return
        old = self._config if pointer == 0b01 else self._limits[pointer]
        new = int.from_bytes((data + old.to_bytes(2, "big")[len(data) :])[:2], "big")
        if pointer != 0b01:
            self._limits[pointer] = new
            return
        self._convert()
        shut_down = bool(new & 0x0100)
        was_shut_down = bool(old & 0x0100)
        self._config = new & 0x1FF0 | 0x6000  # OS is a command, R1 R0 are fixed
        if (shut_down and new & 0x8000) or (was_shut_down and not shut_down):
            self._ready = self._clock() + 0.026
        elif shut_down and not was_shut_down and self._ready is not None and self._clock() >= self._ready:
            self._ready = None
