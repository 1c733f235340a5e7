"""The emulated Raspberry Pi 3: real drivers of the BCM2837's pins and I2C controllers, a thermometer on I2C bus 1.

It has no disk, no saved state and no virtio: the file system is in memory, the command agent uses the first UART, the
network is a USB adapter.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from tests.hil.image.contents import SOURCE
from tests.hil.pi.contents import DTB, PLACE, QEMU, private
from tests.hil.rig.channel import Channel
from tests.hil.rig.guest import Guest
from tests.hil.rig.qemu import GUEST_ADDRESS
from tests.hil.rig.qemu_machine import QemuHost, QemuMachine
from tests.hil.rig.source import share_source

BOOT_LIMIT: Final = 240.0  # seconds; about 20 on a quiet computer
HELLO_PERIOD: Final = 3.0
THERMOMETER: Final = 0x48
GPIO_LEVELS: Final = 0x3F200034  # GPLEV0 (BCM2835 ARM Peripherals, section 6.1, at the BCM2837's base): pins 0 to 31
KERNEL_LINE: Final = "console=ttyS1,115200 quiet nokaslr panic=-1"
PROGRAMS: Final = {
    "bin/bash": '#!/bin/busybox sh\nexec /bin/busybox sh "$@"\n',
    "usr/bin/machine-server": '#!/bin/busybox sh\nexec python3 -m runtime.server.cli "$@"\n',
    "usr/bin/machine": '#!/bin/busybox sh\nexec python3 -m command.cli "$@"\n',
}
NETWORK: Final = f"""for name in $(ls /sys/class/net); do
    [ $name = lo ] || ip address add {GUEST_ADDRESS}/24 dev $name 2>/dev/null
    ip link set $name up
done"""

_ROOMS: Final = ("e2e", "netns", "sim", "unit")  # of tests, which only the host runs
UNUSED: Final = ("bench", "changes", "docs", "micro", "web", *(f"tests/{room}" for room in _ROOMS))
"""Parts of the source that no program of the guest needs. The file system of the guest is in its memory, half of which
is enough for the rest."""


class RaspberryPi(QemuMachine):
    """`with RaspberryPi() as pi:` boots one with the project's current source."""

    def __init__(self) -> None:
        super().__init__(Path(), image=PLACE, resume=False)

    def start(self, *, resume: bool) -> None:
        """Start QEMU."""
        initrd = self.folder / "initrd.cpio"
        self._pack_source(initrd)
        self.resumed = False
        modules = QEMU / "usr/lib/x86_64-linux-gnu/qemu"
        self.launch(self._command_line(initrd), env={**os.environ, "QEMU_MODULE_DIR": str(modules)})

    def prepare_disk(self) -> None:
        """Do nothing: there is no disk."""

    def _pack_source(self, initrd: Path) -> None:
        """Append the source: the kernel unpacks two archives in the same file one after the other."""
        folder = self.folder / "source"
        share_source(folder / SOURCE.lstrip("/"))
        for name, text in PROGRAMS.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        for name in UNUSED:
            shutil.rmtree(folder / SOURCE.lstrip("/") / name, ignore_errors=True)
        packed = subprocess.run(
            "find . | cpio -o -H newc --quiet", shell=True, cwd=folder, check=True, stdout=subprocess.PIPE
        )
        with initrd.open("wb") as out:
            for data in ((PLACE / "base.cpio").read_bytes(), packed.stdout):
                out.write(data + bytes(-len(data) % 512))

    def _command_line(self, initrd: Path) -> list[str]:
        run = self.folder
        return [
            *(*private(QEMU, "qemu-system-aarch64"), "-L", str(QEMU / "usr/share/qemu")),
            *("-M", "raspi3b", "-m", "1G", "-smp", "4", "-accel", "tcg,thread=multi", "-display", "none", "-no-reboot"),
            *("-kernel", str(PLACE / "vmlinuz"), "-dtb", str(PLACE / DTB), "-initrd", str(initrd)),
            *("-append", KERNEL_LINE, "-monitor", "none"),
            *("-chardev", f"socket,id=agent,path={run / 'agent.sock'},server=on,wait=off", "-serial", "chardev:agent"),
            *("-serial", f"file:{run / 'console.log'}"),
            *("-chardev", f"socket,id=qmp,path={run / 'qmp.sock'},server=on,wait=off"),
            *("-mon", "chardev=qmp,mode=control"),
            *("-device", f"tmp105,id=thermometer,bus=i2c-bus.1,address={THERMOMETER}"),
            *("-netdev", "user,id=net0,restrict=on", "-device", "usb-net,netdev=net0"),
        ]


class PiGuest(Guest):
    """The guest as tests use it, without a saved state and without a mounted share."""

    async def connect(self) -> None:
        """Wait for the agent, then for the network."""
        self.host = await QemuHost.open(self)
        self.channel = Channel(await self.vm.open_agent())
        self.nursery.start_soon(self.channel.receive)
        greeted = False
        while not greeted:  # data sent before the agent listens is lost, as on any serial line
            with trio.move_on_after(HELLO_PERIOD):
                await self.channel.ask("hello", time=time.time())
                greeted = True
        await self.run(NETWORK)

    async def pins(self) -> int:
        """Return the levels of GPIO 0 to 31 in the chip's register, read from outside."""
        return int((await self.qmp.monitor(f"xp /1wx {GPIO_LEVELS:#x}")).split()[1], 16)

    async def set_temperature(self, celsius: float) -> None:
        """Set the temperature of the thermometer."""
        where = {"path": "/machine/peripheral/thermometer", "property": "temperature"}
        await self.qmp("qom-set", **where, value=round(celsius * 1000))


@asynccontextmanager
async def open_pi(vm: RaspberryPi) -> AsyncIterator[PiGuest]:
    """Connect to it once it has booted."""
    async with trio.open_nursery() as nursery:
        guest = PiGuest(vm, nursery)
        try:
            with trio.fail_after(BOOT_LIMIT):
                await guest.connect()
        except trio.TooSlowError:
            raise AssertionError(f"it did not answer within {BOOT_LIMIT:.0f} s:\n{vm.log()}") from None
        # The kernel goes on without the files for which there was no memory.
        left_out = (await guest.run("dmesg | grep 'unpacking failed'", check=False)).output
        assert not left_out.strip(), f"the system is too large for the memory of the guest: {left_out}"
        yield guest
        nursery.cancel_scope.cancel()
