"""Serial ports of Linux: pyserial opens and configures, then the descriptor is read without it."""

from __future__ import annotations

import os
import termios
from pathlib import Path
from typing import Final

import trio

from hal.errors import Fault, HalError
from hal.linux.descriptor import DescriptorStream
from hal.ports.serial import SerialSettings

BY_ID: Final = Path("/dev/serial/by-id")
GROUP: Final = "dialout"  # whose members may use serial ports on Debian and its descendants
_PARITY: Final = {"none": "N", "even": "E", "odd": "O"}


def open_serial(path: str, settings: SerialSettings) -> trio.abc.Stream:
    """Open the port at `path`, exclusively."""
    import serial

    try:
        port = serial.Serial(
            path,
            settings.baud,
            bytesize=settings.bits,
            parity=_PARITY[settings.parity],
            stopbits=settings.stop_bits,
            rtscts=settings.hardware_flow,
            xonxoff=settings.software_flow,
            exclusive=True,
            timeout=0,
        )
    except serial.SerialException as error:
        cause = error.__context__
        if isinstance(cause, OSError) and cause.errno is not None:
            raise HalError.of(cause, path, group=GROUP) from error
        if error.errno is not None:
            raise HalError.of(OSError(error.errno, os.strerror(error.errno)), path, group=GROUP) from error
        raise HalError(f"{path}: {error}", Fault.UNSUPPORTED) from error
    except ValueError as error:
        raise HalError(f"{path}: {error}", Fault.UNSUPPORTED) from error
    # The duplicate keeps the configuration and the lock: they belong to the open file, not to the descriptor.
    fd = os.dup(port.fileno())
    port.close()
    # pyserial asks the terminal to return nothing at once when nothing is there; a vanished device reads just so.
    attributes = termios.tcgetattr(fd)
    attributes[6][termios.VMIN] = 1
    termios.tcsetattr(fd, termios.TCSANOW, attributes)
    return DescriptorStream(fd, path)


def ports() -> list[str]:
    """Paths of the serial ports by stable identity; none where the system has no such directory."""
    try:
        return sorted(str(path) for path in BY_ID.iterdir())
    except OSError:
        return []
