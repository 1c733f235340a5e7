"""USB of Linux: devices by libusb, through pyusb."""

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
from hal.linux.usb_devices import SYS, Plugged, find_plugged, kernel_drivers
from hal.ports.usb import UsbIdentity
from hal.worker import BusWorker

DEV: Final = Path("/dev")
PERMISSION: Final = "install the rules: `sudo machine hal install-rules`, and add the user to group plugdev"
SLICE: Final = 100  # ms that the thread waits for data at a time
CONTROL_LIMIT: Final = 1000  # ms; devices have 5 s for a request by USB 2.0, 9.2.6.4, and take far less
CHUNK: Final = 16384  # bytes written at a time: whole packets of any speed
_RECIPIENT: Final = 0x1F
_INTERFACE: Final = 1  # as recipient of a control transfer (USB 2.0, table 9-2)

T = TypeVar("T")


class LinuxUsbDevice:
    """One open device. Reads have a thread of their own, so that one that waits for data delays no write."""

    def __init__(self, device: Plugged, backend: Any, sys: Path, dev: Path) -> None:
        self.identity = device.identity
        self.name = str(device.identity)
        self._plugged = device
        self._sys = sys
        self._node = device.node(dev)
        self._known = identify(self._node)
        self._backend = backend
        self._worker = BusWorker(f"usb {device.identity.port}")
        self._reader = BusWorker(f"usb {device.identity.port} reads")
        self._arrived: defaultdict[int, deque[bytes]] = defaultdict(deque)
        self._packets: dict[int, int] = {}  # size of a packet by endpoint, of those whose interface is claimed
        # The worker's thread has what follows.
        self._device: Any = None
        self._claimed: set[int] = set()
        self._detached: set[int] = set()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Use it while the context is open; leaving gives interfaces back to the drivers that had them."""
        async with self._worker.opened():
            try:
                async with self._reader.opened():
                    await self._worker.run(partial(self._guarded, self._open))
                    yield
            finally:
                self._worker.post(self._close)

    async def control_in(self, request_type: int, request: int, value: int, index: int, length: int) -> bytes:
        """A control transfer from the device: at most `length` bytes."""
        return bytes(await self._control(request_type, request, value, index, length))

    async def control_out(self, request_type: int, request: int, value: int, index: int, data: bytes = b"") -> None:
        """A control transfer to the device."""
        await self._control(request_type, request, value, index, data)

    async def read(self, endpoint: int, length: int) -> bytes:
        """Wait for data of a bulk or interrupt endpoint (0x80 set): at most `length` bytes.

        Data that ends with a full packet may be handed out only when no more came for a tenth of a second.
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
        """Send all of `data` to a bulk or interrupt endpoint; cancelled, a part may have been sent."""
        await self._packet(endpoint)
        while True:
            sent = await self._worker.run(partial(self._guarded, self._write, endpoint, data[:CHUNK]))
            data = data[sent or 0 :]
            if sent is not None and not data:
                return

    async def lost(self) -> NoReturn:
        """Wait until the device is gone, then raise HalError (gone)."""
        if self._known is not None:
            await vanished(self._node, self._known)
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

    # What follows runs in the threads.

    def _open(self) -> None:
        place = (self._plugged.bus, self._plugged.address)
        found = usb.core.find(backend=self._backend, custom_match=lambda one: (one.bus, one.address) == place)
        if found is None:
            raise self._gone()
        self._device = found
        try:
            found.get_active_configuration()
        except usb.core.USBError as error:
            if error.errno is not None:
                raise
            found.set_configuration()

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
            pass  # it is gone, and so is what there was to give back

    def _prepare(self, endpoint: int) -> int:
        known: dict[int, tuple[int, int]] = {}
        for interface in self._device.get_active_configuration():
            if interface.bAlternateSetting == 0:
                known |= {one.bEndpointAddress: (interface.bInterfaceNumber, one.wMaxPacketSize) for one in interface}
        if endpoint not in known:
            raise HalError(
                f"{self.name} has no endpoint 0x{endpoint:02x}",
                Fault.UNSUPPORTED,
                remedy=f"it has {', '.join(f'0x{one:02x}' for one in sorted(known)) or 'none'}",
            )
        interface, size = known[endpoint]
        self._claim(interface)
        return size & 0x7FF  # the upper bits are something else (USB 2.0, table 9-13)

    def _claim(self, interface: int) -> None:
        if interface in self._claimed:
            return
        try:
            if self._device.is_kernel_driver_active(interface):
                self._device.detach_kernel_driver(interface)
                self._detached.add(interface)
        except NotImplementedError:
            pass  # of a system where drivers cannot be detached
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
                f"{self.name} refuses request 0x{request:02x} (type 0x{request_type:02x}, value 0x{value:04x}, "
                f"index 0x{index:04x})",
                Fault.UNSUPPORTED,
                remedy="look at the device's documentation",
            ) from error

    def _read(self, endpoint: int, size: int, arrived: deque[bytes]) -> None:
        """Whatever comes is kept, also if the caller has been cancelled meanwhile."""
        if not arrived and (data := self._timed(self._device.read, endpoint, size)):
            arrived.append(bytes(data))

    def _write(self, endpoint: int, data: bytes) -> int | None:
        sent: int | None = self._timed(self._device.write, endpoint, data)
        return sent

    def _timed(self, call: Callable[..., Any], endpoint: int, what: object) -> Any:
        """None if the time was over before anything happened."""
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
        if error.errno == errno.ENODEV or identify(self._node) != self._known:
            return self._gone()
        if error.errno == errno.EBUSY:
            drivers = sorted(set(kernel_drivers(self._plugged, self._sys).values()))
            if drivers in ([], ["usbfs"]):
                return HalError(f"{self.name}: another program, or another resource of this one, has it", Fault.BUSY)
            names = " and ".join(drivers)
            remedy = f"unload it: `sudo rmmod {' '.join(drivers)}`"
            return HalError(f"{self.name}: the kernel's driver {names} has it", Fault.BUSY, remedy=remedy)
        if error.errno == errno.EPIPE:
            return HalError(f"{self.name}: the device halted the endpoint", Fault.BUS, remedy="send what it expects")
        found = HalError.of(error, f"{self.name} ({self._node})")
        if found.fault is Fault.PERMISSION:
            found.remedy = PERMISSION
        return found


@asynccontextmanager
async def open_usb(
    identity: UsbIdentity, *, backend: Any = None, sys: Path = SYS, dev: Path = DEV
) -> AsyncIterator[LinuxUsbDevice]:
    """Take the device that fits `identity` while the context is open; everything is the system's own by default.

    A kernel driver that has an interface is detached from it when the interface is first used, and gets it back at the
    end. HalError: gone, unsupported (several fit, or libusb is missing), busy, permission.
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
