"""A simulated serial port: a pty that any program can open by its path."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hal.linux.descriptor import DescriptorStream


@dataclass(frozen=True, slots=True)
class SimSerial:
    """Both ends of a line: a driver opens `path`; the simulated device reads and writes `far`."""

    path: str
    far: DescriptorStream


@contextmanager
def serial_line() -> Iterator[SimSerial]:
    """Create a serial line while the context is open; leaving it unplugs the device."""
    master, slave = os.openpty()
    try:
        import tty  # only the pseudo-terminals of POSIX need it

        tty.setraw(slave)
        line = SimSerial(os.ttyname(slave), DescriptorStream(master, "the device's end"))
    finally:
        os.close(slave)
    try:
        yield line
    finally:
        line.far.close()
