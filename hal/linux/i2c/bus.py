"""I2C buses of Linux, through i2c-dev and smbus2.

The node is opened for each transaction, which costs a few microseconds, so that an idle bus holds no descriptor. While
a descriptor is open, the kernel can neither unload the adapter's module nor finish unplugging it, gives the adapter
another number when it is plugged in again, and blocks the rest of that USB hub. The functions of the adapter are
queried only once, because for an adapter on USB the query is a separate transfer.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from fcntl import ioctl
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final, NoReturn

import smbus2
import trio

from hal.errors import Fault, HalError
from hal.linux.i2c.adapters import DEV, SYS, find_adapter, kernel_driver
from hal.linux.i2c.smbus import carry_out
from hal.linux.nodes import Identity, identify, identity, vanished
from hal.ports.i2c import STUCK, check_transaction
from hal.worker import BusWorker

GROUP: Final = "i2c"  # the group with access on Debian and its derivatives
PERMISSION: Final = f"add the user to group {GROUP}, or install the rules: `sudo machine hal install-rules`"

# From linux/i2c-dev.h and linux/i2c.h
I2C_RETRIES: Final = 0x0701
I2C_TIMEOUT: Final = 0x0702  # in units of 10 ms
I2C_SLAVE: Final = 0x0703
I2C_FUNCS: Final = 0x0705
FUNC_I2C: Final = 0x1
LONGEST_MESSAGE: Final = 8192  # bytes, the limit of i2c-dev
MOST_MESSAGES: Final = 42  # in a transaction, the limit of i2c-dev
DEVICE_LIMIT: Final = 100  # in units of 10 ms: less than the limit for closing, more than a full message at 100 kHz
RETRIES: Final = 1  # after losing arbitration to another master
PROMPT: Final = 1.0  # seconds in which the kernel rejects an unsupported transfer; a hanging USB adapter takes 2
# Documentation/i2c/fault-codes.rst of Linux; all other errors are faults of the bus.
_FAULTS: Final = {
    errno.ENXIO: (Fault.NO_ACKNOWLEDGE, "nobody answers"),
    errno.EREMOTEIO: (Fault.NO_ACKNOWLEDGE, "nobody answers"),
    errno.ENODEV: (Fault.NO_ACKNOWLEDGE, "nobody answers"),
    errno.ETIMEDOUT: (Fault.TIMEOUT, "not finished within the time limit: the clock or data line is held low"),
    errno.EIO: (Fault.BUS, "the transfer failed: the clock or data line is held low, or disturbed"),
    errno.EAGAIN: (Fault.BUS, "another master occupies the bus"),
    errno.EBUSY: (Fault.BUS, "the bus is not free"),
    errno.EBADMSG: (Fault.BUS, "corrupted data (packet error code)"),
    errno.EOPNOTSUPP: (Fault.UNSUPPORTED, "the adapter does not support this transfer"),
    errno.EINVAL: (Fault.UNSUPPORTED, "the adapter does not support this transfer"),
}
_STUCK: Final = frozenset({errno.ETIMEDOUT, errno.EIO, errno.EBUSY})


@dataclass(frozen=True, slots=True)
class _Life:
    """The lifetime of an adapter between plugging in and unplugging."""

    number: int
    node: Path
    identity: Identity
    functions: int  # I2C_FUNC_...
    watching: trio.Lock = field(default_factory=trio.Lock)
    waiting: set[trio.CancelScope] = field(default_factory=set)  # scopes to cancel when the adapter is gone


class LinuxI2cBus:
    """A bus, shared by all users of the adapter."""

    def __init__(self, name: str, asked: str, buses: I2cBuses) -> None:
        self.name = name
        self.asked = asked
        self.node: Path | None = buses.dev / name  # None while it is gone
        self._buses = buses
        self._worker = BusWorker(name)
        self._life: _Life | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Keep the bus open while the context is open. HalError if the adapter is missing or access is denied."""
        async with self._worker.opened():
            await self._attach()
            yield

    async def transaction(self, address: int, *steps: bytes | int) -> list[bytes]:
        """Execute `steps` at a 7-bit `address` with repeated starts between them; see hal.ports.i2c."""
        check_transaction(self.name, address, steps)
        life = self._life or await self._attach()
        try:
            return await self._worker.run(partial(self._transfer, life, address, steps))
        except HalError as error:
            if error.fault is Fault.GONE:
                self._end(life)
            raise

    async def lost(self) -> NoReturn:
        """Wait until the adapter is gone, then raise HalError (gone)."""
        if (life := self._life) is not None:
            with trio.CancelScope() as scope:
                life.waiting.add(scope)
                try:
                    async with life.watching:  # only one task watches
                        await vanished(life.node, life.identity)
                finally:
                    life.waiting.discard(scope)
            self._end(life)
        raise self._gone()

    async def _attach(self) -> _Life:
        """Find the adapter by its name; return the existing lifetime if it is the same adapter."""
        life = await self._worker.run(self._find)
        if self._life is None or self._life.identity != life.identity:
            self._life, self.node = life, life.node
        return self._life

    def _end(self, life: _Life) -> None:
        for scope in life.waiting:
            scope.cancel()
        if self._life is life:
            self._life = self.node = None

    def _gone(self) -> HalError:
        return HalError(f"{self.name}: the adapter is gone", Fault.GONE, remedy="plug the adapter in again")

    # The following methods run in the worker's thread.

    def _find(self) -> _Life:
        adapter = find_adapter(self.asked, self._buses.sys, self._buses.dev)
        node = self._buses.dev / adapter.name
        with self._open(node) as fd:
            functions = bytearray(struct.calcsize("L"))
            try:
                self._buses.ioctl(fd, I2C_FUNCS, functions)
                self._buses.ioctl(fd, I2C_TIMEOUT, DEVICE_LIMIT)
                self._buses.ioctl(fd, I2C_RETRIES, RETRIES)
            except OSError as error:
                raise HalError.of(error, str(node)) from error
            if not any(functions):  # i2c-tiny-usb returns zeros instead of an error
                raise HalError(
                    f"{node}: the adapter does not report its functions",
                    Fault.BUS,
                    remedy="unplug it and plug it in again",
                )
            return _Life(adapter.number, node, identity(os.fstat(fd)), *struct.unpack("L", functions))

    @contextmanager
    def _open(self, node: Path) -> Iterator[int]:
        try:
            fd = os.open(node, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
                raise self._gone() from error
            failure = HalError.of(error, str(node))
            if failure.fault is Fault.PERMISSION:
                failure.remedy = PERMISSION
            raise failure from error
        try:
            yield fd
        finally:
            os.close(fd)

    def _transfer(self, life: _Life, address: int, steps: tuple[bytes | int, ...]) -> list[bytes]:
        with self._open(life.node) as fd:
            if identity(os.fstat(fd)) != life.identity:
                raise self._gone()
            bus = self._buses.smbus()
            bus.fd = fd
            begin = monotonic()
            try:
                self._buses.ioctl(fd, I2C_SLAVE, address)  # fails if a kernel driver uses the address
                if life.functions & FUNC_I2C:
                    return _plain(bus, address, steps)
                return carry_out(bus, life.functions, address, steps)
            except OSError as error:
                raise self._explain(error, life, address, late=monotonic() - begin > PROMPT) from error
            except HalError as error:
                raise HalError(f"{self.name}: {error.message}", error.fault, remedy=error.remedy) from error

    def _explain(self, error: OSError, life: _Life, address: int, *, late: bool) -> HalError:
        if identify(life.node) != life.identity:
            return self._gone()
        where = f"{self.name} address 0x{address:02x}"
        if error.errno == errno.EBUSY and (driver := kernel_driver(life.number, address, self._buses.sys)):
            device = f"{life.number}-{address:04x}"
            return HalError(
                f"{where} is used by the kernel driver {driver}",
                Fault.BUSY,
                remedy=f"unbind it: `echo {device} | sudo tee /sys/bus/i2c/drivers/{driver}/unbind`, "
                "and remove it from config.txt or the device tree",
            )
        # i2c-dev queries the functions of the adapter before each transfer, and treats a missing answer as "none".
        if error.errno == errno.EOPNOTSUPP and late:
            text = f"{where}: the adapter does not answer: the clock or data line is held low, or the adapter hangs"
            return HalError(text, Fault.TIMEOUT, remedy=f"{STUCK}, and plug the adapter in again")
        fault, reason = _FAULTS.get(error.errno or 0, (Fault.BUS, error.strerror or str(error)))
        return HalError(f"{where}: {reason}", fault, remedy=STUCK if error.errno in _STUCK else "")


def _plain(bus: Any, address: int, steps: tuple[bytes | int, ...]) -> list[bytes]:
    if len(steps) > MOST_MESSAGES or any(_length(step) > LONGEST_MESSAGE for step in steps):
        raise HalError(
            f"a transaction has at most {MOST_MESSAGES} steps of {LONGEST_MESSAGE} bytes",
            Fault.UNSUPPORTED,
            remedy="use fewer steps or fewer bytes",
        )
    message = smbus2.i2c_msg
    messages = [
        message.read(address, step) if isinstance(step, int) else message.write(address, step) for step in steps
    ]
    bus.i2c_rdwr(*messages)
    return [bytes(message) for message, step in zip(messages, steps, strict=True) if isinstance(step, int)]


def _length(step: bytes | int) -> int:
    return step if isinstance(step, int) else len(step)


class I2cBuses:
    """The buses of this computer; users of the same bus share it."""

    def __init__(
        self,
        *,
        sys: Path = SYS,
        dev: Path = DEV,
        smbus: Callable[[], Any] = smbus2.SMBus,
        ioctl: Callable[[int, int, Any], object] = ioctl,
    ) -> None:
        """Use the system's own files and calls; tests pass replacements."""
        self.sys = sys
        self.dev = dev
        self.smbus = smbus
        self.ioctl = ioctl
        self._open: dict[LinuxI2cBus, int] = {}

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[LinuxI2cBus]:
        """Open or share the bus `name` while the context is open.

        `name` is a number (`1`), a node (`/dev/i2c-1`) or a link to one, or the adapter's name or a part of it.
        HalError: gone if there is no such adapter, permission, unsupported if several adapters match.
        """
        bus = self._shared(name)
        self._open[bus] = self._open.get(bus, 0) + 1
        try:
            async with bus.opened():
                yield bus
        finally:
            self._open[bus] -= 1
            if not self._open[bus]:
                del self._open[bus]

    def _shared(self, name: str) -> LinuxI2cBus:
        adapter = find_adapter(name, self.sys, self.dev)
        for bus in self._open:
            if bus.node == self.dev / adapter.name or bus.asked == name:
                return bus
        return LinuxI2cBus(adapter.name, name, self)
