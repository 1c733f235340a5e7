"""A guest in QEMU: resumed from its saved state, observed and changed from outside through QEMU's monitor."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import trio

from tests.hil.image.contents import SOURCE
from tests.hil.image.places import IMAGE
from tests.hil.rig.lines import connect
from tests.hil.rig.qemu import GUEST_ADDRESS, command_line
from tests.hil.rig.qmp import Qmp, connect_qmp
from tests.hil.rig.usb import QemuUsb
from tests.hil.rig.vm import VirtualMachine

if TYPE_CHECKING:
    from tests.hil.rig.guest import Guest

MOUNT_OPTIONS: Final = "trans=virtio,version=9p2000.L,msize=262144,cache=loose,ro"
MOUNT: Final = f"mountpoint -q {SOURCE} || mount -t 9p -o {MOUNT_OPTIONS} source {SOURCE}"
NETWORK: Final = f"ip link set lo up; ip address replace {GUEST_ADDRESS}/24 dev eth0; ip link set eth0 up"


class QemuMachine(VirtualMachine):
    """A virtual machine in QEMU. `threads` is QEMU's `thread=`: "multi" or "single"."""

    logs = ("qemu.log", "console.log")

    def __init__(self, share: Path, *, image: Path = IMAGE, resume: bool = True, threads: str = "multi") -> None:
        super().__init__(share, image=image, resume=resume)
        self.threads = threads
        self.disk = self.folder / "disk.qcow2"

    def prepare_disk(self) -> None:
        """Create a layer over base.qcow2; create base.qcow2 itself while the image is being built."""
        self.disk.unlink(missing_ok=True)
        base = self.image / "base.qcow2"
        words = ["qemu-img", "create", "-q", "-f", "qcow2"]
        if base.exists():
            words += ["-b", str(base), "-F", "qcow2", str(self.disk)]
        else:
            words += ["-b", "root.ext4", "-F", "raw", str(base)]
            self.disk = base
        subprocess.run(words, check=True, capture_output=True)

    def start(self, *, resume: bool) -> None:
        """Start QEMU with the disk's present content."""
        for name in ("agent.sock", "qmp.sock"):
            (self.folder / name).unlink(missing_ok=True)
        state = self.image / "state.zst" if resume else None
        self.resumed = resume
        self.launch(command_line(self.image, self.disk, self.folder, self.share, state=state, threads=self.threads))

    def setup(self) -> str:
        """Return the setup command; a resumed guest already has its network."""
        return MOUNT if self.resumed else f"{NETWORK}; {MOUNT}"

    async def open_agent(self) -> trio.abc.Stream:
        """Connect to the socket of the agent's port."""
        return await connect(self, "agent.sock")


class QemuHost:
    """The surroundings of a guest in QEMU: forwarded ports, cables, a way to freeze it."""

    def __init__(self, guest: Guest, qmp: Qmp) -> None:
        self.qmp = qmp
        self.usb = QemuUsb(guest)

    @classmethod
    async def open(cls, guest: Guest) -> Self:
        """Connect to the monitor and wait until a saved guest has resumed."""
        qmp = await connect_qmp(guest.vm, guest.nursery)
        if not (await qmp("query-status"))["running"]:
            await qmp.wait_event("RESUME")
        return cls(guest, qmp)

    async def forward(self, port: int) -> int:
        """Forward a free loopback port of this computer to `port` in the guest, and return its number."""
        before = await self._forwarded()
        said = await self.qmp.monitor(f"hostfwd_add net0 tcp:127.0.0.1:0-{GUEST_ADDRESS}:{port}")
        new = await self._forwarded() - before
        assert len(new) == 1, said
        return new.pop()[0]

    async def unforward(self, port: int) -> None:
        """Close a port opened by `forward`."""
        await self.qmp.monitor(f"hostfwd_remove net0 tcp:127.0.0.1:{port}")

    async def _forwarded(self) -> set[tuple[int, int]]:
        rows = [line.split() for line in (await self.qmp.monitor("info usernet")).splitlines()]
        return {(int(row[3]), int(row[5])) for row in rows if row and row[0].startswith("TCP[HOST_FORWARD]")}

    async def freeze(self) -> None:
        """Stop the guest's processors."""
        await self.qmp("stop")
