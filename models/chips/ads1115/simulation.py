"""Simulated ADS1115 and ADS1015 (Texas Instruments SBAS444D, SBAS473E), analog-to-digital converters on I2C."""

from __future__ import annotations

from collections.abc import Callable

import trio

from models.chips.common.simulated_registers import WideRegisters

PAIRS = ((0, 1), (0, 3), (1, 3), (2, 3), (0, None), (1, None), (2, None), (3, None))  # MUX[2:0]
FULL_SCALE = (6.144, 4.096, 2.048, 1.024, 0.512, 0.256, 0.256, 0.256)  # PGA[2:0]
RATES = {16: (8, 16, 32, 64, 128, 250, 475, 860), 12: (128, 250, 490, 920, 1600, 2400, 3300, 3300)}  # DR[2:0]


class Ads1115Target(WideRegisters):
    """An ADS1115 (`bits` 16) or ADS1015 (`bits` 12). `volts` has the voltage of each input against ground."""

    pointer_mask = 0b11

    def __init__(self, *, bits: int = 16, clock: Callable[[], float] = trio.current_time) -> None:
        self.volts = [0.0, 0.0, 0.0, 0.0]
        self.bits = bits
        self.slowness = 1.0  # 0.9 to 1.1 by the data sheet ("data rate variation"); more for a defective chip
        self._clock = clock
        self.power_cycle()

    def power_cycle(self) -> None:
        """Set the reset values: powered down, AIN0 against AIN1, 2.048 V."""
        self.pointer = 0
        self._config = 0x0583  # without OS
        self._result = 0
        self._thresholds = {2: 0x8000, 3: 0x7FFF if self.bits == 16 else 0x7FF0}
        self._done: float | None = None  # when the conversion in progress ends

    def period(self) -> float:
        """Return the seconds of a conversion at the configured data rate."""
        return self.slowness / RATES[self.bits][self._config >> 5 & 7]

    def _convert(self) -> None:
        """Store the results of conversions that have ended."""
        now = self._clock()
        if self._done is None or now < self._done:
            return
        continuous = not self._config & 0x0100
        self._done = now + self.period() if continuous else None
        positive, negative = PAIRS[self._config >> 12 & 7]
        volts = self.volts[positive] - (0.0 if negative is None else self.volts[negative])
        most = 1 << (self.bits - 1)
        count = round(volts / FULL_SCALE[self._config >> 9 & 7] * most)
        self._result = max(-most, min(most - 1, count)) * 2 ** (16 - self.bits) % 0x10000

    def load(self, pointer: int) -> bytes:
        """Return a register: conversion, configuration with the state in OS, or a threshold."""
        self._convert()
        if pointer == 0:
            word = self._result
        elif pointer == 1:
            word = self._config | (0x8000 if self._done is None else 0)
        else:
            word = self._thresholds[pointer]
        return word.to_bytes(2, "big")

    def store(self, pointer: int, data: bytes) -> None:
        """Write a register; a configuration applies to the next conversion, and OS starts one in power-down."""
        if pointer == 0 or len(data) < 2:
            return
        word = int.from_bytes(data[:2], "big")
        if pointer != 1:
            self._thresholds[pointer] = word
            return
        self._convert()
        was_continuous = not self._config & 0x0100
        self._config = word & 0x7FFF
        if not word & 0x0100:
            self._done = self._clock() + self.period()
        elif was_continuous:
            self._done = None  # OS is effective in power-down only, so this starts nothing
        elif word & 0x8000 and self._done is None:
            self._done = self._clock() + self.period()
