"""The command line of QEMU. Restoring a saved state needs exactly the devices with which it was saved."""

from __future__ import annotations

from pathlib import Path
from typing import Final

MEMORY_MIB: Final = 1024
KERNEL_LINE: Final = (
    "console=ttyS0 root=/dev/vda rw quiet loglevel=4 mitigations=off nokaslr net.ifnames=0 panic=-1 "
    "systemd.show_status=0 log_buf_len=1M tsc=reliable"
)
"""`tsc=reliable`: all processors of QEMU have one counter. Without it Linux reads the time from the HPET, which is
emulated under QEMU's lock: 9 us for each look at the clock, a third of what a Python program costs until it runs."""
GUEST_ADDRESS: Final = "10.0.2.15"
HOST_ADDRESS: Final = "10.0.2.2"


def command_line(
    image: Path, disk: Path, run: Path, share: Path, *, state: Path | None = None, threads: str = "multi"
) -> list[str]:
    """Return the command line of QEMU with software emulation: not every computer has KVM, which changes the speed.

    `disk` is an image in qcow2, `run` the folder for sockets and the console's log, `share` what the guest can mount;
    `state` is resumed, otherwise the guest boots. `threads` is "multi", one for each processor, or "single": slower,
    but when the kernel rewrites its own code, no processor continues with the old code.
    """
    words = [
        *("qemu-system-x86_64", "-M", "q35", "-accel", f"tcg,thread={threads},tb-size=512", "-cpu", "max", "-smp", "2"),
        *("-m", str(MEMORY_MIB), "-nodefaults", "-display", "none", "-no-reboot"),
        *("-kernel", str(image / "vmlinuz"), "-initrd", str(image / "initrd.cpio"), "-append", KERNEL_LINE),
        *("-serial", f"file:{run / 'console.log'}"),
        *("-drive", f"file={disk},if=virtio,format=qcow2,cache=writeback"),
        *("-device", "virtio-serial-pci"),
        *("-chardev", f"socket,id=agent,path={run / 'agent.sock'},server=on,wait=off"),
        *("-device", "virtserialport,chardev=agent,name=rig.agent"),
        *("-chardev", f"socket,id=qmp,path={run / 'qmp.sock'},server=on,wait=off", "-mon", "chardev=qmp,mode=control"),
        *("-fsdev", f"local,id=source,path={share},security_model=none,multidevs=remap,readonly=on"),
        *("-device", "virtio-9p-pci,fsdev=source,mount_tag=source"),
        *("-device", "virtio-rng-pci", "-device", "qemu-xhci,id=xhci", "-device", "i6300esb"),
        *("-netdev", "user,id=net0,restrict=on", "-device", "virtio-net-pci,netdev=net0,id=nic0"),
    ]
    words += ["-global", "migration.store-global-state=off"]  # saved while it stood still, it runs when it is resumed
    if state is not None:
        words += ["-incoming", f"exec:zstd -dcq {state}"]
    return words
