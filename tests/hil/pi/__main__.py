"""Build the emulated Raspberry Pi 3, unless it is current: `python -m tests.hil.pi`.

It consists of a separately unpacked QEMU 10, Debian's kernel for arm64 with the device tree of the board, and a file
system in memory with Python and the packages of requirements/run.lock. The project's source is added at every start.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from pathlib import Path

import trio

from tests.hil.image.__main__ import check_platform, prepare_host
from tests.hil.image.places import BUILD, ROOT
from tests.hil.image.rootfs import suite
from tests.hil.image.steps import BuildError, command, shell, step
from tests.hil.pi.contents import DTB, MODULES, PACKAGES, PLACE, QEMU_PACKAGES, WORK, built_from, inputs_digest, private
from tests.hil.pi.packages import Packages

SITE = "opt/site"

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin:/sbin:/usr/sbin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs devices /dev; mount -t tmpfs tmpfs /tmp
mkdir -p /dev/pts /dev/shm; mount -t devpts devpts /dev/pts
hostname pi; ip link set lo up
for module in %(modules)s; do modprobe $module 2>/dev/null; done
export PYTHONPATH=/opt/site:/opt/machine PYTHONDONTWRITEBYTECODE=1 HOME=/root LANG=C.UTF-8
exec python3 -m tests.hil.pi.agent
"""


async def unpack_qemu() -> None:
    """Unpack a QEMU with a correct I2C controller of the board."""
    release = suite()
    backports = f"{release}-backports" if release == "bookworm" else ""
    place = WORK / "place"
    packages = Packages(WORK / "apt-amd64", "amd64", [release, backports] if backports else [release])
    async with step("QEMU for arm unpacked"):
        await packages.update()
        await packages.unpack(place / "qemu", *QEMU_PACKAGES, release=backports)


async def make_system() -> None:
    """Create the kernel, the device tree and the base of the file system in memory."""
    packages = Packages(WORK / "apt-arm64", "arm64", [suite()])
    root, kernel = WORK / "root", WORK / "kernel"
    async with step("Python and kernel for arm64 unpacked"):
        await packages.update()
        await packages.unpack(root, *PACKAGES)
        await packages.unpack(kernel, await packages.depends("linux-image-arm64"), closure=False)
    async with step("arm64 file system"):
        await _install_modules(kernel, root)
        await trio.to_thread.run_sync(_trim, root)
        await compile_to(root, "usr/lib/python3.11")  # unpacked but not configured, so Debian did not compile it
        place = WORK / "place"
        (image,) = kernel.glob("boot/vmlinuz-*")
        (tree,) = kernel.glob(f"usr/lib/linux-image-*/broadcom/{DTB}")
        shutil.copy(image, place / "vmlinuz")
        shutil.copy(tree, place / DTB)


async def install_wheels() -> None:
    """Install the locked packages, built for arm64."""
    site = WORK / "site"
    async with step("Python packages for arm64"):
        platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (17, 24, 26, 27, 28, 31, 34, 35)]
        await command(
            *(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--target", site),
            *("--no-compile", "--require-hashes", "--only-binary=:all:", "--python-version=3.11"),
            *("--implementation=cp", "--abi=cp311", "--abi=abi3", "--abi=none"),
            *("--platform=manylinux2014_aarch64", *platforms, "--platform=any"),
            *("-r", ROOT / "requirements" / "run.lock"),
        )
        await compile_to(site, "", SITE)


async def compile_to(tree: Path, below: str, place: str = "") -> None:
    """Compile the modules of a folder below `tree`, which is at `place` in the guest: compiling there takes minutes."""
    words = [sys.executable, "-m", "compileall", "-q", "-j2", "-d", f"/{place or below}", tree / below]
    await command(*words, env={"PYTHONDONTWRITEBYTECODE": ""})


async def _install_modules(kernel: Path, root: Path) -> None:
    (folder,) = kernel.glob("lib/modules/*")  # noqa: ASYNC240 - nothing else runs here
    await command("depmod", "-b", kernel, folder.name)
    target = root / "lib" / "modules" / folder.name
    for name in MODULES:
        try:
            shown = await command("modprobe", "-d", kernel, "-S", folder.name, "--show-depends", name)
        except BuildError:
            continue
        for path in re.findall(r"^insmod (\S+)", shown, re.MULTILINE):
            copy = target / Path(path).relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy(folder / name, target)
    await command("depmod", "-b", root, folder.name)


def _trim(root: Path) -> None:
    """Remove unused files and add our own."""
    for name in ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/perl5", "var", "usr/share/zoneinfo"):
        shutil.rmtree(root / name, ignore_errors=True)
    for name in ("dev", "proc", "sys", "tmp", "root", "opt/machine", "etc", "bin", "run"):
        (root / name).mkdir(parents=True, exist_ok=True)
    busybox = next(path for path in (root / "bin/busybox", root / "usr/bin/busybox") if path.exists())
    if busybox != root / "bin" / "busybox":
        shutil.copy(busybox, root / "bin" / "busybox")
    if not (root / "bin" / "bash").exists():
        (root / "bin" / "bash").symlink_to("busybox")
    (root / "etc" / "passwd").write_text("root::0:0::/root:/bin/sh\n")
    (root / "etc" / "group").write_text("root:x:0:\n")
    (root / "etc" / "hosts").write_text("127.0.0.1 localhost pi\n")
    init = root / "init"
    init.write_text(INIT % {"modules": " ".join(MODULES)})
    init.chmod(0o755)


async def build() -> None:
    """Build everything, then move it to its place."""
    for folder in (WORK, PLACE):
        shutil.rmtree(folder, ignore_errors=True)
    (WORK / "place").mkdir(parents=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(unpack_qemu)
        nursery.start_soon(make_system)
        nursery.start_soon(install_wheels)
    async with step("file system packed"):
        root, place = WORK / "root", WORK / "place"
        shutil.move(WORK / "site", root / SITE)
        # The first UART would belong to the Bluetooth chip, and QEMU's second one receives one character per second.
        tree = str(place / DTB)
        await command(*private(place / "qemu", "fdtput"), "-r", tree, "/soc/serial@7e201000/bluetooth")
        await shell('find . | cpio -o -H newc --quiet > "$TO"', cwd=root, TO=place / "base.cpio")
    (place / "inputs.json").write_text(json.dumps({"files": inputs_digest()}))
    place.rename(PLACE)
    shutil.rmtree(WORK)


async def main() -> None:
    """Build the machine unless it is current."""
    BUILD.mkdir(parents=True, exist_ok=True)
    if built_from() == inputs_digest():
        print(f"The emulated Raspberry Pi in {BUILD} is up to date.")
        return
    check_platform()
    prepare_host(None)
    print("Building the emulated Raspberry Pi 3; about a minute.", flush=True)
    start = time.monotonic()
    try:
        await build()
    except* BuildError as errors:
        raise errors.exceptions[0] from None
    print(f"Built in {time.monotonic() - start:.0f} s.")


if __name__ == "__main__":
    try:
        trio.run(main)
    except BuildError as error:
        sys.exit(f"The emulated Raspberry Pi was not built: {error}")
