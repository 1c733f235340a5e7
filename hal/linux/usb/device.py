"""USB devices of Linux, through pyusb and libusb."""

from __future__ import annotations

import errno
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import trio
import usb.core
import usb.util
from usb.backend import libusb1

from hal.errors import Fault, HalError
from hal.linux.nodes import identify, vanished
from hal.linux.usb.listing import SYS, Plugged, find_plugged, kernel_drivers
from hal.ports.usb import UsbIdentity
from hal.worker import BusWorker

DEV: Final = Path("/dev")
PERMISSION: Final = "install the rules: `sudo machine hal install-rules`, and add the user to group plugdev"
SLICE: Final = 100  # ms; the thread waits for data in intervals of this length
CONTROL_LIMIT: Final = 1000  # ms; USB 2.0, 9.2.6.4, allows 5 s for a request, but devices are much faster
CHUNK: Final = 16384  # bytes written at a time: a multiple of the packet size at any speed
_RECIPIENT: Final = 0x1F
_INTERFACE: Final = 1  # as recipient of a control transfer (USB 2.0, table 9-2)

T = TypeVar("T")


class LinuxUsbDevice:
    """An open device. Reads use a separate thread, so that a read that waits for data does not delay writes."""

    def __init__(self, device: Plugged, backend: Any, sys: Path, dev: Path) -> None:
        self.identity = device.identity
        self.name = str(device.identity)
        self._plugged = device
        self._sys = sys
        self._node = device.node(dev)
        self._node_identity = identify(self._node)
        self._backend = backend
        self._worker = BusWorker(f"usb {device.identity.port}")
        self._reader = BusWorker(f"usb {device.identity.port} reads")
        self._arrived: defaultdict[int, deque[bytes]] = defaultdict(deque)
        self._packets: dict[int, int] = {}  # packet size by endpoint, for endpoints of claimed interfaces
        # The following attributes are used in the worker's thread only.
        self._device: Any = None
        self._claimed: set[int] = set()
        self._detached: set[int] = set()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Keep the device open while the context is open; leaving returns interfaces to their kernel drivers."""
        async with self._worker.opened():
            try:
                async with self._reader.opened():
                    await self._worker.run(partial(self._guarded, self._open))
                    yield
            finally:
                self._worker.post(self._close)

    async def control_in(self, request_type: int, request: int, value: int, index: int, length: int) -> bytes:
        """Receive at most `length` bytes from the device by a control transfer."""
        return bytes(await self._control(request_type, request, value, index, length))

    async def control_out(self, request_type: int, request: int, value: int, index: int, data: bytes = b"") -> None:
        """Send data to the device by a control transfer."""
        await self._control(request_type, request, value, index, data)

    async def read(self, endpoint: int, length: int) -> bytes:
        """Wait for data of a bulk or interrupt endpoint (0x80 set) and return at most `length` bytes.

        Data that ends with a full packet may be returned only after a pause of 0.1 s.
        """
        size = await self._packet(endpoint)
        arrived = self._arrived[endpoint]
        while not arrived:
            await self._reader.run(partial(self._guarded, self._read, endpoint, -(-length // size) * size, arrived))
        data = arrived.popleft()
        if data[length:]:
            arrived.appendleft(data[length:])
        return data[:length]

    async def write(self, endpoint: int, data: bytes) -> None:
        """Send all of `data` to a bulk or interrupt endpoint. If cancelled, a part may have been sent."""
        await self._packet(endpoint)
        while True:
            sent = await self._worker.run(partial(self._guarded, self._write, endpoint, data[:CHUNK]))
            data = data[sent or 0 :]
            if sent is not None and not data:
                return

    async def lost(self) -> NoReturn:
        """Wait until the device is gone, then raise HalError (gone)."""
        if self._node_identity is not None:
            await vanished(self._node, self._node_identity)
        raise self._gone()

    async def _control(self, request_type: int, request: int, value: int, index: int, data: bytes | int) -> Any:
        return await self._worker.run(partial(self._guarded, self._transfer, request_type, request, value, index, data))

    async def _packet(self, endpoint: int) -> int:
        await trio.lowlevel.checkpoint()
        if endpoint not in self._packets:
            self._packets[endpoint] = await self._worker.run(partial(self._guarded, self._prepare, endpoint))
        return self._packets[endpoint]

    def _gone(self) -> HalError:
        return HalError(f"{self.name}: the device is gone", Fault.GONE, remedy="plug the device in again")

    # The following methods run in the threads.

    def _open(self) -> None:
        location = (self._plugged.bus, self._plugged.address)
        device = usb.core.find(backend=self._backend, custom_match=lambda other: (other.bus, other.address) == location)
        if device is None:
            raise self._gone()
        self._device = device
        try:
            device.get_active_configuration()
        except usb.core.USBError as error:
            if error.errno is not None:
                raise
            device.set_configuration()

    def _close(self) -> None:
        if self._device is None:
            return
        for interface in self._claimed:
            self._try(usb.util.release_interface, self._device, interface)
            if interface in self._detached:
                self._try(self._device.attach_kernel_driver, interface)
        self._try(usb.util.dispose_resources, self._device)

    def _try(self, function: Callable[..., object], *arguments: object) -> None:
        try:
            function(*arguments)
        except (usb.core.USBError, NotImplementedError):
            pass  # the device is gone, so there is nothing to release

    def _prepare(self, endpoint: int) -> int:
        endpoints: dict[int, tuple[int, int]] = {}
        for interface in self._device.get_active_configuration():
            if interface.bAlternateSetting == 0:
                number = interface.bInterfaceNumber
                endpoints |= {entry.bEndpointAddress: (number, entry.wMaxPacketSize) for entry in interface}
        if endpoint not in endpoints:
            raise HalError(
                f"{self.name} has no endpoint 0x{endpoint:02x}",
                Fault.UNSUPPORTED,
                remedy=f"it has {', '.join(f'0x{address:02x}' for address in sorted(endpoints)) or 'none'}",
            )
        interface, size = endpoints[endpoint]
        self._claim(interface)
        return size & 0x7FF  # the upper bits have another meaning (USB 2.0, table 9-13)

    def _claim(self, interface: int) -> None:
        if interface in self._claimed:
            return
        try:
            if self._device.is_kernel_driver_active(interface):
                self._device.detach_kernel_driver(interface)
                self._detached.add(interface)
        except NotImplementedError:
            pass  # on a system where drivers cannot be detached
        usb.util.claim_interface(self._device, interface)
        self._claimed.add(interface)

    def _transfer(self, request_type: int, request: int, value: int, index: int, data: bytes | int) -> Any:
        if request_type & _RECIPIENT == _INTERFACE:
            self._claim(index & 0xFF)
        try:
            return self._device.ctrl_transfer(request_type, request, value, index, data, timeout=CONTROL_LIMIT)
        except usb.core.USBError as error:
            if error.errno != errno.EPIPE:
                raise
            raise HalError(
                f"{self.name} rejects request 0x{request:02x} (type 0x{request_type:02x}, value 0x{value:04x}, "
                f"index 0x{index:04x})",
                Fault.UNSUPPORTED,
                remedy="check the documentation of the device",
            ) from error

    def _read(self, endpoint: int, size: int, arrived: deque[bytes]) -> None:
        """Read and queue data, so that it is kept if the caller is cancelled."""
        if not arrived and (data := self._timed(self._device.read, endpoint, size)):
            arrived.append(bytes(data))

    def _write(self, endpoint: int, data: bytes) -> int | None:
        sent: int | None = self._timed(self._device.write, endpoint, data)
        return sent

    def _timed(self, call: Callable[..., Any], endpoint: int, what: object) -> Any:
        """Call a transfer with the timeout SLICE; return None if it has expired."""
        try:
            return call(endpoint, what, timeout=SLICE)
        except usb.core.USBTimeoutError:
            return None
        except usb.core.USBError as error:
            if error.errno == errno.EPIPE:
                self._try(self._device.clear_halt, endpoint)
            raise

    def _guarded(self, function: Callable[..., T], *arguments: Any) -> T:
        try:
            return function(*arguments)
        except usb.core.USBError as error:
            raise self._explain(error) from error

    def _explain(self, error: usb.core.USBError) -> HalError:
        if error.errno == errno.ENODEV or identify(self._node) != self._node_identity:
            return self._gone()
        if error.errno == errno.EBUSY:
            drivers = sorted(set(kernel_drivers(self._plugged, self._sys).values()))
            if drivers in ([], ["usbfs"]):
                return HalError(f"{self.name} is used by another program or resource", Fault.BUSY)
            names = " and ".join(drivers)
            remedy = f"unload it: `sudo rmmod {' '.join(drivers)}`"
            return HalError(f"{self.name} is used by the kernel driver {names}", Fault.BUSY, remedy=remedy)
        if error.errno == errno.EPIPE:
            return HalError(f"{self.name}: the device halted the endpoint", Fault.BUS, remedy="check the sent data")
        failure = HalError.of(error, f"{self.name} ({self._node})")
        if failure.fault is Fault.PERMISSION:
            failure.remedy = PERMISSION
        return failure


@asynccontextmanager
async def open_usb(
    identity: UsbIdentity, *, backend: Any = None, sys: Path = SYS, dev: Path = DEV
) -> AsyncIterator[LinuxUsbDevice]:
    """Open the device that matches `identity` while the context is open. Tests replace the other parameters.

    A kernel driver is detached from an interface when the interface is first used, and attached again at the end.
    HalError: gone, unsupported (several devices match, or libusb is missing), busy, permission.
    """
    device = LinuxUsbDevice(find_plugged(identity, sys), backend or _libusb(), sys, dev)
    async with device.opened():
        yield device


def _libusb() -> Any:
    if (backend := libusb1.get_backend()) is None:
        raise HalError(
            "libusb is not installed", Fault.UNSUPPORTED, remedy="install it: `sudo apt install libusb-1.0-0`"
        )
    return backend
