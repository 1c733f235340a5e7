"""Serial cables plugged into the guest from outside; the test holds their far end.

In QEMU, a cable is a device of QEMU. In User-Mode Linux, it is a program in the guest behind vhci_hcd, and its far end
is a TCP connection to that program.
"""

from __future__ import annotations

import itertools
import os
import socket
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.hil.rig.channel import GuestProcess
    from tests.hil.rig.guest import Guest

    Connect = Callable[[int], Awaitable[trio.SocketStream]]
    """Connects to a TCP port of the guest."""

PERIPHERAL = "/machine/peripheral"  # QEMU's path of plugged-in devices
PREFIX = "cable"  # of the names of cables and their far ends in QEMU


class SerialCable(ABC):
    """An FTDI cable (ftdi_sio, /dev/ttyUSB…). `far` is a byte stream: the instrument's end of the cable."""

    far: trio.SocketStream

    def __init__(self, guest: Guest, serial: str) -> None:
        self.guest = guest
        self.serial = serial

    @property
    def by_id(self) -> str:
        """Return the stable path of the cable in the guest."""
        return _by_id(self.serial)

    async def plug(self, serial: str = "") -> None:
        """Plug it in, optionally with another serial number, and wait until its stable path exists."""
        self.serial = serial or self.serial
        await self._insert()
        await self.guest.run(["udevadm", "wait", self.by_id])

    async def unplug(self) -> None:
        """Unplug it, even while it is in use, and wait until its stable path is gone."""
        await self._pull()
        await self.guest.run(["udevadm", "wait", "--removed", self.by_id])

    @abstractmethod
    async def _insert(self) -> None: ...

    @abstractmethod
    async def _pull(self) -> None: ...


def _by_id(serial: str) -> str:
    return f"/dev/serial/by-id/usb-QEMU_QEMU_USB_SERIAL_{serial}-if00-port0"


Kind = TypeVar("Kind", bound=SerialCable)


class Usb(ABC, Generic[Kind]):
    """The cables plugged in from outside."""

    devices = ""
    """The prefix of the devices' paths below /sys."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        self.cables: list[Kind] = []

    async def serial(self, serial: str = "RIG0001") -> SerialCable:
        """Create a cable and plug it in. A test may have at most four; they are removed after it."""
        if not self.cables:
            await self._take_away()  # left by an interrupted test
        cable = await self._make(serial)
        self.cables.append(cable)
        await cable.plug()
        return cable

    async def clear(self) -> None:
        """Remove all cables."""
        for cable in self.cables:
            await cable.far.aclose()
        await self._take_away()
        self.cables.clear()

    @abstractmethod
    async def _make(self, serial: str) -> Kind: ...

    @abstractmethod
    async def _take_away(self) -> None: ...


class QemuCable(SerialCable):
    """A cable of QEMU, behind its xHCI controller."""

    def __init__(self, guest: Guest, name: str, serial: str, port: str, far: trio.SocketStream) -> None:
        super().__init__(guest, serial)
        self.name = name
        self.port = port
        self.far = far

    async def _insert(self) -> None:
        where = {"bus": "xhci.0", "port": self.port}
        options = {"driver": "usb-serial", "chardev": self.name, "id": self.name, "serial": self.serial}
        await self.guest.qmp("device_add", **options, **where, **{"always-plugged": True})

    async def _pull(self) -> None:
        await self.guest.qmp("device_del", id=self.name)


class QemuUsb(Usb[QemuCable]):
    """Cables controlled through QEMU's monitor."""

    devices = "/devices/pci"

    def __init__(self, guest: Guest) -> None:
        super().__init__(guest)
        self._ports = (str(number) for number in range(1, 5))

    async def _make(self, serial: str) -> QemuCable:
        port = next(self._ports)
        name = f"{PREFIX}{port}-{os.urandom(3).hex()}"
        path = Path(self.guest.vm.folder) / f"{name}.sock"
        address = {"type": "unix", "data": {"path": str(path)}}
        backend = {"type": "socket", "data": {"addr": address, "server": True, "wait": False}}
        await self.guest.qmp("chardev-add", id=name, backend=backend)
        sock = trio.socket.socket(trio.socket.AF_UNIX)
        await sock.connect(str(path))
        return QemuCable(self.guest, name, serial, port, trio.SocketStream(sock))

    async def _take_away(self) -> None:
        """Remove what QEMU lists, including cables of an interrupted test."""
        for entry in await self.guest.qmp("qom-list", path=PERIPHERAL):
            if entry["name"].startswith(PREFIX):
                serial = await self.guest.qmp("qom-get", path=f"{PERIPHERAL}/{entry['name']}", property="serial")
                await self.guest.qmp("device_del", id=entry["name"])
                await self.guest.run(["udevadm", "wait", "--removed", _by_id(serial)])
        for entry in await self.guest.qmp("query-chardev"):
            if entry["label"].startswith(PREFIX):
                await self.guest.qmp("chardev-remove", id=entry["label"])


class UmlCable(SerialCable):
    """A cable simulated by `python3 -m tests.hil.guest.ftdi` in the guest."""

    def __init__(self, guest: Guest, serial: str, process: GuestProcess, far: trio.SocketStream) -> None:
        super().__init__(guest, serial)
        self.process = process
        self.far = far
        self._requests = itertools.count(1)

    async def _insert(self) -> None:
        await self._ask(f"plug {self.serial}")

    async def _pull(self) -> None:
        await self._ask("unplug")

    async def _ask(self, request: str) -> None:
        number = next(self._requests)
        await self.process.write(f"{number} {request}\n")
        await self.process.wait_output(f"done {number}\n")


class UmlUsb(Usb[UmlCable]):
    """Cables simulated by programs in the guest; programs and devices end with the test."""

    devices = "/devices/platform/vhci_hcd"

    def __init__(self, guest: Guest, connect: Connect) -> None:
        super().__init__(guest)
        self._connect = connect

    async def _make(self, serial: str) -> UmlCable:
        process = await self.guest.start(["python3", "-m", "tests.hil.guest.ftdi"])
        await process.wait_output("\n")
        far = await self._connect(int(process.stdout.split()[0]))
        far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return UmlCable(self.guest, serial, process, far)

    async def _take_away(self) -> None:
        for cable in self.cables:
            await cable.process.stop()
            await self.guest.run(["udevadm", "wait", "--removed", cable.by_id])
