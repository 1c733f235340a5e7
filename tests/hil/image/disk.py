"""Convert a tree of files to the files that QEMU starts: kernel, initial file system and a journaled ext4 disk."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.hil.image.kernel import Kernel, boot_modules
from tests.hil.image.places import WORK
from tests.hil.image.steps import command, shell

INIT = """#!/bin/busybox sh
b=/bin/busybox
$b mkdir -p /proc /dev /newroot
$b mount -t proc proc /proc
$b mount -t devtmpfs devices /dev
while read module; do $b insmod /modules/$module; done < /order
tries=0
while [ ! -b /dev/vda ] && [ $tries -lt 3000 ]; do $b usleep 10000; tries=$((tries + 1)); done
$b mount -t ext4 -o rw,noatime /dev/vda /newroot
$b mount --move /dev /newroot/dev
$b mount --move /proc /newroot/proc
exec $b switch_root /newroot /lib/systemd/systemd
"""


async def make_initrd(kernel: Kernel, target: Path) -> None:
    """Create the initial file system: busybox and the modules that mount the disk."""
    folder = WORK / "initrd"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("bin", "modules"):
        (folder / name).mkdir(parents=True)
    busybox = shutil.which("busybox")
    assert busybox is not None
    shutil.copy(busybox, folder / "bin" / "busybox")
    order = await boot_modules(kernel, folder / "modules")
    (folder / "order").write_text("".join(f"{name}\n" for name in order))
    init = folder / "init"
    init.write_text(INIT)
    init.chmod(0o755)
    await shell('find . | cpio -o -H newc --quiet > "$TARGET"', cwd=folder, TARGET=target)


async def make_disk(tree: Path, target: Path) -> None:
    """Create an ext4 file system with a journal that holds `tree` and has space for tests."""
    used = int((await command("du", "-sm", tree)).split()[0])
    size = used * 5 // 4 + 256
    options = ["-t", "ext4", "-m", "0", "-J", "size=16", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"]
    await command("mke2fs", "-q", *options, "-d", tree, target, f"{size}M")
