"""Network cables of the machine, each to a router of its own. The machine's end looks like hardware to netmgr."""

from __future__ import annotations

import shutil
from pathlib import Path

import trio

from netmgr.netlink import route
from tests.hil.guest.air import DNSMASQ, INTERNET
from tests.hil.guest.namespaces import Namespace, command

PREFIX = "cable"
FOLDER = Path("/run/cables")
LEASES = """interface=lan
port=0
dhcp-leasefile={folder}/leases
dhcp-range=10.7.{number}.10,10.7.{number}.99,1h
dhcp-authoritative
no-ping
"""


class Sysfs:
    """Folder of the kernel's interfaces, in which the machine's end of a cable has a device, as hardware has."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __truediv__(self, name: str) -> Path:
        """Return the folder of an interface."""
        return FOLDER / "hardware" if name.startswith(PREFIX) else self._folder / name


def count_as_hardware() -> None:
    """Make netmgr in this process manage the ends of cables, which are of the kind that containers have."""
    (FOLDER / "hardware" / "device").mkdir(parents=True, exist_ok=True)
    vars(route)["SYSFS"] = Sysfs(route.SYSFS)


def _touch(path: Path) -> None:
    path.touch()


class Cable:
    """A cable: `device` in the machine, and a router that leases addresses and leads to the Internet."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.device = f"{PREFIX}{number}"
        self._router = Namespace(f"router{number}")

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        folder = FOLDER / self._router.name
        folder.mkdir(parents=True)
        _touch(Path("/etc/resolv.conf"))  # `ip netns exec` mounts the file of a namespace over it
        await self._router.open()
        await command("ip", "link", "add", self.device, "type", "veth", "peer", "lan", "netns", self._router.name)
        await self._router.ip(
            f"address add 10.7.{self._number}.1/24 dev lan", f"address add {INTERNET}/32 dev lo", "link set lan up"
        )
        settings = folder / "dnsmasq.conf"
        settings.write_text((DNSMASQ + LEASES).format(folder=folder, number=self._number))
        await self._router.run("dnsmasq", f"--conf-file={settings}")
        task_status.started()
        await trio.sleep_forever()

    async def pull(self) -> None:
        """Pull it out."""
        await self._router.ip("link set lan down")

    async def plug(self) -> None:
        """Plug it in again."""
        await self._router.ip("link set lan up")

    async def close(self) -> None:
        """Remove it with its router."""
        await self._router.close()
        shutil.rmtree(FOLDER / self._router.name, ignore_errors=True)
