"""Serial ports of Linux: pyserial opens and configures a port, then the descriptor is used directly."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import trio

from hal.errors import Fault, HalError
from hal.inventory.serial_port import ROOT, find_serial_port, identity_of, listed, serial_ports
from hal.linux.descriptor import DescriptorStream
from hal.ports.serial import SerialIdentity, SerialSettings
from hal.worker import BusWorker

GROUP: Final = "dialout"  # the group with access on Debian and its derivatives
USED: Final = "end the program that uses it, or remove the other resource of this machine that does"
LONGEST_DRAIN: Final = 1.0  # maximum seconds to wait for unsent data when closing
_SERIAL_STRUCT: Final = 128  # bytes; more than struct serial_struct of linux/serial.h on any architecture
_CLOSING_WAIT: Final = 40  # offset of closing_wait, which is in hundredths of a second
_SHORTEST_WAIT: Final = 1
_PARITY: Final = {"none": "N", "even": "E", "odd": "O"}
_BITS_PER_BYTE: Final = 12  # maximum: start, 8 data, parity, 2 stop


class SerialStream(DescriptorStream):
    """An open port. Closing it waits as long as sending the buffered data should take, then drops the rest.

    Otherwise, if flow control or a stuck device holds the line, the kernel would block the whole program for up to 30 s
    (closing_wait in setserial(8)).
    """

    def __init__(self, fd: int, name: str, baud: int) -> None:
        super().__init__(fd, name)
        self._baud = baud

    async def aclose(self) -> None:
        """Close within some seconds; if the kernel still blocks, a separate thread finishes closing."""
        with trio.CancelScope(shield=True):
            if unsent := self._unsent():
                await trio.sleep(min(LONGEST_DRAIN, unsent * _BITS_PER_BYTE / self._baud))
            if self._would_wait():
                await self._close_in_thread()
        await super().aclose()

    def close(self) -> None:
        """Close at once, dropping unsent data."""
        self._would_wait()
        super().close()

    def _unsent(self) -> int:
        if self.fileno() < 0:
            return 0
        try:
            (count,) = struct.unpack("i", fcntl.ioctl(self.fileno(), termios.TIOCOUTQ, bytes(4)))
        except OSError:  # gone
            return 0
        return int(count)

    def _would_wait(self) -> bool:
        """Drop unsent data; return whether closing would still block."""
        if not self._unsent():
            return False
        with suppress(termios.error):  # gone in the meantime
            termios.tcflush(self.fileno(), termios.TCOFLUSH)
        if not self._unsent():
            return False
        # Some drivers (cdc_acm) cannot drop data. Then shorten the waiting time, if permitted.
        try:
            settings = bytearray(fcntl.ioctl(self.fileno(), termios.TIOCGSERIAL, bytes(_SERIAL_STRUCT)))
            struct.pack_into("@H", settings, _CLOSING_WAIT, _SHORTEST_WAIT)
            fcntl.ioctl(self.fileno(), termios.TIOCSSERIAL, bytes(settings))
        except OSError:
            return True
        return False

    async def _close_in_thread(self) -> None:
        worker = BusWorker(f"closing {self.name}")
        with suppress(HalError):  # it takes longer; the kernel gives up after 30 s
            async with worker.opened():
                await worker.run(partial(os.close, self.detach()))


def open_serial(port: str | SerialIdentity, settings: SerialSettings, root: Path = ROOT) -> trio.abc.Stream:
    """Open the port with that path or identity for exclusive use. `root` contains /sys and /dev."""
    if isinstance(port, str):
        return _open(port, settings, root)
    path = str(root / find_serial_port(port, root).path.lstrip("/"))
    stream = _open(path, settings, root)
    # Another device may have got the number between the look-up and opening.
    identity = identity_of(os.fstat(stream.fileno()).st_rdev, root)
    if identity is None or not port.fits(identity):
        stream.close()
        raise HalError(f"{path} is no longer the port of {port}", Fault.GONE)
    return stream


def _open(path: str, settings: SerialSettings, root: Path) -> SerialStream:
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
    except (serial.SerialException, OSError, termios.error) as error:
        raise _open_error(path, error, root) from error
    except ValueError as error:  # a baud rate that this port does not support
        raise HalError(f"{path}: {error}", Fault.UNSUPPORTED, remedy="choose another baud rate") from error
    # The duplicate keeps the configuration and the lock: they belong to the open file, not to the descriptor.
    fd = os.dup(port.fileno())
    try:
        port.close()
        # pyserial configures reads without data to return nothing at once, as for a vanished device. Change that.
        attributes = termios.tcgetattr(fd)
        attributes[6][termios.VMIN] = 1
        termios.tcsetattr(fd, termios.TCSANOW, attributes)
    except (OSError, termios.error) as error:
        os.close(fd)
        raise _open_error(path, error, root) from error
    return SerialStream(fd, path, settings.baud)


def _open_error(path: str, error: Exception, root: Path) -> HalError:
    """Return the system's error that pyserial has wrapped; with a list of ports if this one does not exist."""
    for candidate in (error, error.__context__):
        number = candidate.args[0] if candidate is not None and candidate.args else None
        if isinstance(number, int) and number:
            cause = OSError(number, os.strerror(number))
            failure = HalError.of(cause, path, group=GROUP)
            if failure.fault is Fault.BUSY:
                return HalError(f"{path} is already open", Fault.BUSY, remedy=USED)
            if failure.fault is Fault.GONE:
                return HalError(f"{path}: {cause.strerror}; {listed(serial_ports(root))}", Fault.GONE)
            return failure
    return HalError(f"{path}: {error}", Fault.UNSUPPORTED, remedy="choose a serial port")
