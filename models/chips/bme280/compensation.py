"""Compensation formulas of BME280 and BMP280, with the trimming values stored in each chip. Pure.

Bosch BST-BME280-DS002 revision 1.6: values in section 4.2.2 (table 16), formulas in section 8.1 (double precision).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trimming:
    """The trimming values T1 to T3, P1 to P9 and, for a BME280, H1 to H6."""

    t1: int
    t2: int
    t3: int
    p1: int
    p2: int
    p3: int
    p4: int
    p5: int
    p6: int
    p7: int
    p8: int
    p9: int
    h1: int = 0
    h2: int = 0
    h3: int = 0
    h4: int = 0
    h5: int = 0
    h6: int = 0

    @classmethod
    def parse(cls, low: bytes, humid: bytes = b"") -> Trimming:
        """Decode the 24 bytes from 0x88; `humid` is the byte at 0xA1 followed by the 7 bytes from 0xE1, or empty."""
        values: tuple[int, ...] = struct.unpack("<HhhH8h", low)
        if humid:
            h1, h2, h3, e4, e5, e6, h6 = struct.unpack("<BhBbBbb", humid)
            values += (h1, h2, h3, e4 << 4 | e5 & 0x0F, e6 << 4 | e5 >> 4, h6)
        return cls(*values)


def temperature(raw: int, trim: Trimming) -> tuple[float, float]:
    """Return degrees Celsius, and the fine temperature for the other formulas."""
    first = (raw / 16384 - trim.t1 / 1024) * trim.t2
    second = (raw / 131072 - trim.t1 / 8192) ** 2 * trim.t3
    fine = first + second
    return fine / 5120, fine


def pressure(raw: int, fine: float, trim: Trimming) -> float:
    """Return the pressure in pascal; 0 if the trimming values are invalid."""
    first = fine / 2 - 64000
    second = first * first * trim.p6 / 32768 + first * trim.p5 * 2
    second = second / 4 + trim.p4 * 65536
    first = (trim.p3 * first * first / 524288 + trim.p2 * first) / 524288
    first = (1 + first / 32768) * trim.p1
    if first == 0:
        return 0.0
    pascal = (1048576 - raw - second / 4096) * 6250 / first
    return pascal + (trim.p9 * pascal * pascal / 2147483648 + pascal * trim.p8 / 32768 + trim.p7) / 16


def humidity(raw: int, fine: float, trim: Trimming) -> float:
    """Return the relative humidity in percent, 0 to 100."""
    distance = fine - 76800
    percent = (raw - (trim.h4 * 64 + trim.h5 / 16384 * distance)) * (
        trim.h2 / 65536 * (1 + trim.h6 / 67108864 * distance * (1 + trim.h3 / 67108864 * distance))
    )
    return max(0.0, min(100.0, percent * (1 - trim.h1 * percent / 524288)))
