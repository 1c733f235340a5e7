"""Serial ports of Linux: pyserial opens and configures, then the descriptor is read without it."""

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
from hal.linux.descriptor import DescriptorStream
from hal.linux.serial_ports import ROOT, find_serial_port, identity_of, listed, serial_ports
from hal.ports.serial import SerialIdentity, SerialSettings
from hal.worker import BusWorker

GROUP: Final = "dialout"  # whose members may use serial ports on Debian and its descendants
USED: Final = "end the program, or remove the other resource of this machine, that uses it"
LONGEST_DRAIN: Final = 1.0  # seconds that closing waits for the wire to take what was sent
_SERIAL_STRUCT: Final = 128  # bytes; more than struct serial_struct of linux/serial.h has anywhere
_CLOSING_WAIT: Final = 40  # offset of its closing_wait, in hundredths of a second
_SHORTEST_WAIT: Final = 1
_PARITY: Final = {"none": "N", "even": "E", "odd": "O"}
_BITS_PER_BYTE: Final = 12  # at most: start, 8 data, parity, 2 stop


class SerialStream(DescriptorStream):
    """An open port. Closing it gives the wire the time it needs for what was sent, then drops what is still there.

    Without that the kernel itself would wait, for up to 30 s and with the whole program, where flow control or a device
    that does not listen holds the line (closing_wait in setserial(8)).
    """

    def __init__(self, fd: int, name: str, baud: int) -> None:
        super().__init__(fd, name)
        self._baud = baud

    async def aclose(self) -> None:
        """Close after at most some seconds; what still holds the line then is left to a thread of its own."""
        with trio.CancelScope(shield=True):
            if unsent := self._unsent():
                await trio.sleep(min(LONGEST_DRAIN, unsent * _BITS_PER_BYTE / self._baud))
            if self._would_wait():
                await self._close_apart()
        await super().aclose()

    def close(self) -> None:
        """Close at once, dropping what the wire has not taken."""
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
        """Drop what was not sent; whether the kernel insists on waiting for it nevertheless."""
        if not self._unsent():
            return False
        with suppress(termios.error):  # gone meanwhile
            termios.tcflush(self.fileno(), termios.TCOFLUSH)
        if not self._unsent():
            return False
        # Some drivers (cdc_acm) cannot drop anything. Then the wait itself is shortened, if we may.
        try:
            settings = bytearray(fcntl.ioctl(self.fileno(), termios.TIOCGSERIAL, bytes(_SERIAL_STRUCT)))
            struct.pack_into("@H", settings, _CLOSING_WAIT, _SHORTEST_WAIT)
            fcntl.ioctl(self.fileno(), termios.TIOCSSERIAL, bytes(settings))
        except OSError:
            return True
        return False

    async def _close_apart(self) -> None:
        worker = BusWorker(f"closing {self.name}")
        with suppress(HalError):  # it takes longer; the kernel ends it after its own 30 s
            async with worker.opened():
                await worker.run(partial(os.close, self.detach()))


def open_serial(port: str | SerialIdentity, settings: SerialSettings, root: Path = ROOT) -> trio.abc.Stream:
    """Open the port with that path or identity, exclusively. `root` is where /sys and /dev are looked at."""
    if isinstance(port, str):
        return _open(port, settings, root)
    path = str(root / find_serial_port(port, root).path.lstrip("/"))
    stream = _open(path, settings, root)
    # Between finding and opening, another device may have got the number.
    found = identity_of(os.fstat(stream.fileno()).st_rdev, root)
    if found is None or not port.fits(found):
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
        raise _refused(path, error, root) from error
    except ValueError as error:  # a baud rate that this port cannot have
        raise HalError(f"{path}: {error}", Fault.UNSUPPORTED, remedy="choose another baud rate") from error
    # The duplicate keeps the configuration and the lock: they belong to the open file, not to the descriptor.
    fd = os.dup(port.fileno())
    try:
        port.close()
        # pyserial asks the terminal to return nothing at once when nothing is there; a vanished device reads just so.
        attributes = termios.tcgetattr(fd)
        attributes[6][termios.VMIN] = 1
        termios.tcsetattr(fd, termios.TCSANOW, attributes)
    except (OSError, termios.error) as error:
        os.close(fd)
        raise _refused(path, error, root) from error
    return SerialStream(fd, path, settings.baud)


def _refused(path: str, error: Exception, root: Path) -> HalError:
    """What the system said, whichever way pyserial wrapped it, and which ports there are if this one is not."""
    for candidate in (error, error.__context__):
        number = candidate.args[0] if candidate is not None and candidate.args else None
        if isinstance(number, int) and number:
            cause = OSError(number, os.strerror(number))
            refused = HalError.of(cause, path, group=GROUP)
            if refused.fault is Fault.BUSY:
                return HalError(f"{path} is already open", Fault.BUSY, remedy=USED)
            if refused.fault is Fault.GONE:
                return HalError(f"{path}: {cause.strerror}; {listed(serial_ports(root))}", Fault.GONE)
            return refused
    return HalError(f"{path}: {error}", Fault.UNSUPPORTED, remedy="choose a serial port")


def ports(root: Path = ROOT) -> list[str]:
    """Paths of the USB serial ports, stable ones where there are any."""
    return sorted(port.best for port in serial_ports(root) if port.identity is not None)
