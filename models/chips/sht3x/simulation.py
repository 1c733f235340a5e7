"""Simulated SHT3x (Sensirion "Datasheet SHT3x-DIS", version 5, May 2018): temperature and humidity."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import trio

from hal.sim import Nak

# Command: seconds of the measurement, clock stretching (tables 4 and 9)
SINGLE = {
    0x2400: (0.0125, False),
    0x240B: (0.0045, False),
    0x2416: (0.0025, False),
    0x2C06: (0.0125, True),
    0x2C0D: (0.0045, True),
    0x2C10: (0.0025, True),
}
# Command: seconds between measurements (table 10)
PERIODIC = {0x2000: 2.0, 0x2100: 1.0, 0x2200: 0.5, 0x2300: 0.25, 0x2700: 0.1, 0x2B00: 0.25}
LIMITS = {
    0x1F: 0,
    0x14: 1,
    0x09: 2,
    0x02: 3,
    0x1D: 0,
    0x16: 1,
    0x0B: 2,
    0x00: 3,
}  # low byte of read (E1) and write (61)


class Sht3xTarget:
    """An SHT3x at `temperature_c` and `relative_humidity_pct`; `garble` corrupts the next checksum."""

    def __init__(
        self,
        temperature_c: float = 25.0,
        relative_humidity_pct: float = 50.0,
        *,
        clock: Callable[[], float] = trio.current_time,
    ) -> None:
        self.temperature_c = temperature_c
        self.relative_humidity_pct = relative_humidity_pct
        self.garble = False
        self._clock = clock
        self.power_cycle()

    def power_cycle(self) -> None:
        """Set the idle state; the status shows the reset."""
        self._status = 0x8010
        self._limits = [
            0xCD33,
            0xC92D,
            0x3869,
            0x3466,
        ]  # high set, high clear, low clear, low set (application note on its alert mode)
        self._reply: bytes | None = None
        self._ready: float | None = None  # when the current or next periodic measurement ends
        self._period: float | None = None

    def write(self, data: bytes) -> None:
        """Execute a command of two bytes, which may be followed by a word and its checksum."""
        if not data:
            return
        if len(data) < 2:
            raise Nak
        command = data[0] << 8 | data[1]
        self._reply = None
        if self._period is not None and command not in (0xE000, 0x3093, 0x30A2, 0xF32D):
            raise Nak  # other commands are not accepted during periodic measurement
        if command in SINGLE:
            self._ready = self._clock() + (0.0 if SINGLE[command][1] else SINGLE[command][0])
        elif data[0] << 8 in PERIODIC:
            self._period = PERIODIC[data[0] << 8]
            self._ready = self._clock() + 0.0125
        elif command == 0x3093:
            self._period = self._ready = None
        elif command == 0x30A2:
            self.power_cycle()
        elif command == 0x3041:
            self._status &= ~0x8C10  # table 19: clears the flags but not the state of the heater
        elif command in (0x306D, 0x3066):
            self._status = self._status & ~0x2000 | (0x2000 if command == 0x306D else 0)
        elif command == 0xF32D:
            self._reply = word(self._status)
        elif data[0] == 0xE1 and data[1] in LIMITS:
            self._reply = word(self._limits[LIMITS[data[1]]])
        elif data[0] == 0x61 and data[1] in LIMITS and len(data) >= 5:
            if word(data[2] << 8 | data[3])[2] == data[4]:
                self._limits[LIMITS[data[1]]] = data[2] << 8 | data[3]
                self._status &= ~1
            else:
                self._status |= 1  # the checksum of the last write was wrong
        elif command != 0xE000:
            self._status |= 2  # command not processed

    def read(self, n: int) -> bytes:
        """Return the answer; no acknowledge until one is available (table 9, note on clock stretching)."""
        reply, self._reply = self._reply, None
        if reply is None:
            if self._ready is None or self._clock() < self._ready:
                raise Nak
            self._ready = None if self._period is None else self._clock() + self._period
            reply = word(count((self.temperature_c + 45) / 175)) + word(count(self.relative_humidity_pct / 100))
        if self.garble:
            self.garble = False
            reply = reply[:-1] + bytes([reply[-1] ^ 0xFF])
        return (reply + b"\xff" * n)[:n]


def count(share: float) -> int:
    """Convert a fraction of the range to 16 bits."""
    return max(0, min(65535, math.floor(share * 65535 + 0.5)))


def word(value: int) -> bytes:
    """Return two bytes and their checksum: the remainder of (message xor initial value) divided by x⁸+x⁵+x⁴+1."""
    remainder = reduce(
        lambda rest, place: rest ^ (0x131 << place) if rest >> (place + 8) & 1 else rest,
        range(15, -1, -1),
        (value ^ 0xFF00) << 8,
    )
    return value.to_bytes(2, "big") + bytes([remainder])
