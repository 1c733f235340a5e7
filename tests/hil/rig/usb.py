"""USB devices that are plugged into the guest from outside: serial cables whose far end the test holds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from tests.hil.rig.guest import Guest


class SerialCable:
    """An FTDI cable (ftdi_sio, /dev/ttyUSB…). `far` is a stream of bytes: the instrument's end of it."""

    def __init__(self, guest: Guest, name: str, serial: str, port: str, far: trio.SocketStream) -> None:
        self._guest = guest
        self.name = name
        self.serial = serial
        self.port = port
        self.far = far
        self.plugged = False

    @property
    def by_id(self) -> str:
        """The stable path of the cable in the guest."""
        return f"/dev/serial/by-id/usb-QEMU_QEMU_USB_SERIAL_{self.serial}-if00-port0"

    async def plug(self, serial: str = "") -> None:
        """Plug it in, with another serial number if one is given, and wait until its stable path is there."""
        self.serial = serial or self.serial
        where = {"bus": "xhci.0", "port": self.port}
        options = {"driver": "usb-serial", "chardev": self.name, "id": self.name, "serial": self.serial}
        await self._guest.qmp("device_add", **options, **where, **{"always-plugged": True})
        self.plugged = True
        await self._guest.run(["python3", "-m", "tests.hil.guest.uevents", self.by_id, "appears"])

    async def unplug(self) -> None:
        """Pull it out, whoever is using it, and wait until its stable path is gone."""
        await self._guest.qmp("device_del", id=self.name)
        self.plugged = False
        await self._guest.run(["python3", "-m", "tests.hil.guest.uevents", self.by_id, "vanishes"])


class Usb:
    """What is plugged in from outside."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self._ports = (str(number) for number in range(1, 5))
        self.cables: list[SerialCable] = []

    async def serial(self, serial: str = "RIG0001") -> SerialCable:
        """A new cable, plugged in. At most four in one test; they are taken away after it."""
        port = next(self._ports)
        name = f"cable{port}-{os.urandom(3).hex()}"
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
            if cable.plugged:
                await cable.unplug()
            await self._guest.qmp("chardev-remove", id=cable.name)
        self.cables.clear()
