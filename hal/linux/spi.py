"""SPI of Linux, directly through the kernel's spidev driver."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from fcntl import ioctl
from functools import partial
from pathlib import Path
from typing import Final

from hal.errors import Fault, HalError
from hal.ports.spi import SpiSettings
from hal.worker import BusWorker

DEV: Final = Path("/dev")
SYS: Final = Path("/sys")
PERMISSION: Final = "add the user to group spi, or install the rules: `sudo machine hal install-rules`"
ENABLE: Final = "enable SPI: `sudo raspi-config` (dtparam=spi=on in config.txt), or load spidev"

# From linux/spi/spidev.h and linux/spi/spi.h, with numbers computed as in asm-generic/ioctl.h (x86, ARM, RISC-V).
_WRITE: Final = 1 << 30
_MAGIC: Final = ord("k") << 8
SPI_IOC_WR_BITS_PER_WORD: Final = _WRITE | 1 << 16 | _MAGIC | 3
SPI_IOC_WR_MAX_SPEED_HZ: Final = _WRITE | 4 << 16 | _MAGIC | 4
SPI_IOC_WR_MODE32: Final = _WRITE | 4 << 16 | _MAGIC | 5
SPI_LSB_FIRST: Final = 0x08
TRANSFER: Final = struct.Struct("=QQIIHBBBBBB")
"""struct spi_ioc_transfer: tx_buf, rx_buf, len, speed_hz, delay_usecs, bits_per_word, cs_change, tx_nbits, rx_nbits,
word_delay_usecs, pad."""
ALIGNMENT: Final = 128  # bytes to which spidev rounds up each part: ARCH_KMALLOC_MINALIGN of arm64, the largest value
MOST_PARTS: Final = ((1 << 14) - 1) // TRANSFER.size  # the size field of an ioctl number has 14 bits
DEFAULT_BUFSIZ: Final = 4096  # bytes in one message, the default of spidev's parameter `bufsiz`

_NODE: Final = re.compile(r"spidev(\d+)\.(\d+)")
_FAULTS: Final = {
    errno.ESHUTDOWN: (Fault.GONE, "the device is gone", ""),
    errno.ENODEV: (Fault.GONE, "the device is gone", ""),
    errno.ENXIO: (Fault.GONE, "the device is gone", ""),
    errno.ENOENT: (Fault.GONE, "there is no such node", ENABLE),
    errno.EACCES: (Fault.PERMISSION, "permission denied", PERMISSION),
    errno.EPERM: (Fault.PERMISSION, "permission denied", PERMISSION),
    errno.EMSGSIZE: (
        Fault.UNSUPPORTED,
        "more bytes than spidev supports in one message",
        "transfer fewer bytes at a time",
    ),
}

Ioctl = Callable[[int, int, bytearray], object]


def message_request(parts: int) -> int:
    """Return the number SPI_IOC_MESSAGE(parts), for up to MOST_PARTS."""
    return _WRITE | (parts * TRANSFER.size) << 16 | _MAGIC


def pack_message(parts: Sequence[tuple[int, int, int]], hz: int) -> bytearray:
    """Encode the transfers of a message, each given by the address of the data, the address for the answer, and length.

    Words have 8 bits. Chip select is held from the first to the last transfer.
    """
    return bytearray().join(TRANSFER.pack(tx, rx, length, hz, 0, 8, 0, 0, 0, 0, 0) for tx, rx, length in parts)


def find_node(bus: str, select: int, dev: Path = DEV) -> Path:
    """Return the node of a chip select. HalError: gone (with a list), unsupported if `bus` is another chip select."""
    if match := re.fullmatch(r"(?:spi)?(\d+)", bus):
        node = dev / f"spidev{match[1]}.{select}"
    else:
        match = _NODE.fullmatch(Path(bus).resolve().name)
        if match is None:
            raise HalError(
                f"{bus} is not an SPI bus", Fault.UNSUPPORTED, remedy="use its number, or a node such as /dev/spidev0.0"
            )
        if int(match[2]) not in (0, select):
            raise HalError(
                f"{bus} is chip select {match[2]}, not {select}",
                Fault.UNSUPPORTED,
                remedy=f"use chip select {match[2]}, or the number of the bus, {match[1]}",
            )
        node = dev / f"spidev{match[1]}.{select}"
    if not node.exists():
        nodes = sorted(path.name for path in dev.glob("spidev*"))
        remedy = f"use one of the existing nodes: {', '.join(nodes)}" if nodes else ENABLE
        raise HalError(f"there is no {node}", Fault.GONE, remedy=remedy)
    return node


def message_limit(sys: Path = SYS) -> int:
    """Return the maximum bytes of a message, a parameter of spidev."""
    try:
        return int((sys / "module/spidev/parameters/bufsiz").read_text())
    except (OSError, ValueError):
        return DEFAULT_BUFSIZ


class LinuxSpiDevice:
    """The device at a chip select."""

    def __init__(self, node: Path, settings: SpiSettings, worker: BusWorker, limit: int, ioctl: Ioctl) -> None:
        self.name = node.name
        self._node = node
        self._settings = settings
        self._worker = worker
        self._limit = limit
        self._ioctl = ioctl
        self._fd = -1  # used in the worker's thread only

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Keep the device open while the context is open. HalError if it is missing or rejects the settings."""
        async with self._worker.opened():
            try:
                await self._worker.run(self._open)
                yield
            finally:
                self._worker.post(self._close)

    async def transfer(self, *parts: bytes) -> list[bytes]:
        """Send `parts` while chip select is held; return the received parts, which have the same lengths."""
        total = sum(map(len, parts))
        if sum(-(-len(part) // ALIGNMENT) * ALIGNMENT for part in parts) > self._limit or len(parts) > MOST_PARTS:
            raise HalError(
                f"{self.name}: a transfer of {total} bytes in {len(parts)} parts is more than spidev supports",
                Fault.UNSUPPORTED,
                remedy=f"stay below {self._limit} bytes and {MOST_PARTS} parts, or start the kernel with a larger "
                "spidev.bufsiz",
            )
        return await self._worker.run(partial(self._transfer, parts))

    # The following methods run in the worker's thread.

    def _open(self) -> None:
        settings = self._settings
        try:
            self._fd = os.open(self._node, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise self._explain(error) from error
        mode = settings.mode | (SPI_LSB_FIRST if settings.lsb_first else 0)
        for request, value, what in (
            (SPI_IOC_WR_MODE32, struct.pack("=I", mode), f"mode {settings.mode}{' LSB first' * settings.lsb_first}"),
            (SPI_IOC_WR_BITS_PER_WORD, b"\x08", "words of 8 bits"),
            (SPI_IOC_WR_MAX_SPEED_HZ, struct.pack("=I", settings.max_hz), f"{settings.max_hz} Hz"),
        ):
            try:
                self._ioctl(self._fd, request, bytearray(value))
            except OSError as error:
                self._close()
                raise self._explain(error, what) from error

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _transfer(self, parts: tuple[bytes, ...]) -> list[bytes]:
        if self._fd < 0:  # closed because the device was gone
            self._open()
        sent = [ctypes.create_string_buffer(part, len(part)) for part in parts]
        received = [ctypes.create_string_buffer(len(part)) for part in parts]
        addresses = [
            (ctypes.addressof(tx), ctypes.addressof(rx), len(tx)) for tx, rx in zip(sent, received, strict=True)
        ]
        try:
            self._ioctl(self._fd, message_request(len(parts)), pack_message(addresses, self._settings.max_hz))
        except OSError as error:
            failure = self._explain(error)
            if failure.fault is Fault.GONE:
                self._close()  # while it is open, the kernel cannot free the removed device
            raise failure from error
        return [buffer.raw for buffer in received]

    def _explain(self, error: OSError, what: str = "") -> HalError:
        if what and error.errno == errno.EINVAL:
            return HalError(f"{self.name}: the controller does not support {what}", Fault.UNSUPPORTED)
        if (description := _FAULTS.get(error.errno or 0)) is not None:
            fault, reason, remedy = description
            return HalError(f"{self._node}: {reason}", fault, remedy=remedy)
        return HalError.of(error, str(self._node))


class SpiBuses:
    """The buses of this computer: devices on one bus share its worker."""

    def __init__(self, *, sys: Path = SYS, dev: Path = DEV, ioctl: Ioctl = ioctl) -> None:
        """Use the system's own files and calls; tests pass replacements."""
        self._sys = sys
        self._dev = dev
        self._ioctl = ioctl
        self._workers: dict[str, BusWorker] = {}
        self._taken: set[Path] = set()

    @asynccontextmanager
    async def open(self, bus: str, select: int, settings: SpiSettings) -> AsyncIterator[LinuxSpiDevice]:
        """Open the device at chip select `select` of a bus while the context is open.

        `bus` is its number (`0`), or the node of its first device (/dev/spidev0.0) or a link to it. HalError: gone if
        there is no such device, busy if it is open already, permission, unsupported settings.
        """
        node = find_node(bus, select, self._dev)
        if node in self._taken:
            raise HalError(
                f"{node} is already open in this program", Fault.BUSY, remedy="use each device in only one resource"
            )
        name = node.name.partition(".")[0].replace("dev", "-")
        worker = self._workers.setdefault(name, BusWorker(name))
        device = LinuxSpiDevice(node, settings, worker, message_limit(self._sys), self._ioctl)
        self._taken.add(node)
        try:
            async with device.opened():
                yield device
        finally:
            self._taken.discard(node)
