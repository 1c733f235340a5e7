"""USB devices that are plugged into the guest from outside: serial cables whose far end the test holds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from tests.hil.rig.guest import Guest

PERIPHERAL = "/machine/peripheral"  # where QEMU keeps devices that were plugged in
PREFIX = "cable"  # of the names of our cables and their far ends in QEMU


class SerialCable:
    """An FTDI cable (ftdi_sio, /dev/ttyUSB…). `far` is a stream of bytes: the instrument's end of it."""

    def __init__(self, guest: Guest, name: str, serial: str, port: str, far: trio.SocketStream) -> None:
        self._guest = guest
        self.name = name
        self.serial = serial
        self.port = port
        self.far = far

    @property
    def by_id(self) -> str:
        """The stable path of the cable in the guest."""
        return _by_id(self.serial)

    async def plug(self, serial: str = "") -> None:
        """Plug it in, with another serial number if one is given, and wait until its stable path is there."""
        self.serial = serial or self.serial
        where = {"bus": "xhci.0", "port": self.port}
        options = {"driver": "usb-serial", "chardev": self.name, "id": self.name, "serial": self.serial}
        await self._guest.qmp("device_add", **options, **where, **{"always-plugged": True})
        await self._guest.run(["udevadm", "wait", self.by_id])

    async def unplug(self) -> None:
        """Pull it out, whoever is using it, and wait until its stable path is gone."""
        await _pull(self._guest, self.name)


async def _pull(guest: Guest, name: str) -> None:
    """Pull a cable out of QEMU, and wait until its stable path is gone in the guest."""
    serial = await guest.qmp("qom-get", path=f"{PERIPHERAL}/{name}", property="serial")
    await guest.qmp("device_del", id=name)
    await guest.run(["udevadm", "wait", "--removed", _by_id(serial)])


def _by_id(serial: str) -> str:
    return f"/dev/serial/by-id/usb-QEMU_QEMU_USB_SERIAL_{serial}-if00-port0"


class Usb:
    """What is plugged in from outside."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self._ports = (str(number) for number in range(1, 5))
        self.cables: list[SerialCable] = []

    async def serial(self, serial: str = "RIG0001") -> SerialCable:
        """A new cable, plugged in. At most four in one test; they are taken away after it."""
        if not self.cables:
            await self._take_away()  # what was left by a test that was interrupted
        port = next(self._ports)
        name = f"{PREFIX}{port}-{os.urandom(3).hex()}"
        path = Path(self._guest.vm.folder) / f"{name}.sock"
        address = {"type": "unix", "data": {"path": str(path)}}
        backend = {"type": "socket", "data": {"addr": address, "server": True, "wait": False}}
        await self._guest.qmp("chardev-add", id=name, backend=backend)
        sock = trio.socket.socket(trio.socket.AF_UNIX)
        await sock.connect(str(path))
        cable = SerialCable(self._guest, name, serial, port, trio.SocketStream(sock))
        self.cables.append(cable)
        await cable.plug()
        return cable

    async def clear(self) -> None:
        """Take everything away."""
        for cable in self.cables:
            await cable.far.aclose()
        self.cables.clear()
        await self._take_away()

    async def _take_away(self) -> None:
        """By what QEMU has, which a test that was interrupted may not know."""
        for entry in await self._guest.qmp("qom-list", path=PERIPHERAL):
            if entry["name"].startswith(PREFIX):
                await _pull(self._guest, entry["name"])
        for entry in await self._guest.qmp("query-chardev"):
            if entry["label"].startswith(PREFIX):
                await self._guest.qmp("chardev-remove", id=entry["label"])
