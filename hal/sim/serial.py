"""A simulated serial port: a pty, whose path any program can open."""

from __future__ import annotations

import os
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hal.linux.descriptor import DescriptorStream


@dataclass(frozen=True, slots=True)
class SimSerial:
    """Both ends: `path` is what a driver opens; `far` is what the simulated device reads and writes."""

    path: str
    far: DescriptorStream


@contextmanager
def serial_line() -> Iterator[SimSerial]:
    """A serial line while the context is open; leaving it unplugs the device."""
    master, slave = os.openpty()
    try:
        tty.setraw(slave)
        line = SimSerial(os.ttyname(slave), DescriptorStream(master, "the device's end"))
    finally:
        os.close(slave)
    try:
        yield line
    finally:
        line.far.close()
