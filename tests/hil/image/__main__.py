"""Build the guest of the test rig, unless it is current: `python -m tests.hil.image`.

A first build takes about a minute; if no input has changed, nothing is built. Needs Debian, amd64 and root.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

import trio

from tests.hil.image.contents import HOST_TOOLS
from tests.hil.image.disk import make_disk, make_initrd
from tests.hil.image.kernel import Kernel, build_kernel, install_modules, newest_kernel
from tests.hil.image.places import BUILD, IMAGE, WORK, built_from, inputs_digest, qemu_version, why_not_ready
from tests.hil.image.rootfs import TREE, check_python, complete_tree, install_debian, install_wheels
from tests.hil.image.state import save_state
from tests.hil.image.steps import BuildError, command, install_host_tools, step
from tests.hil.uml.kernel import UmlKernel, build_uml, install_uml, missing_tools
from tests.hil.uml.kernel import newest_kernel as newest_uml


def check_platform() -> None:
    """Raise BuildError on platforms where the image cannot be built."""
    if platform.machine() != "x86_64" or shutil.which("apt-get") is None:
        raise BuildError(f"the guest is built on Debian for amd64 only; this is {platform.platform()}")


def prepare_host(uml: UmlKernel | None) -> None:
    """Install missing programs; BuildError if that is not possible."""
    missing = {tool: package for tool, package in HOST_TOOLS.items() if shutil.which(tool) is None}
    if uml is not None:
        missing |= missing_tools(uml)
    if os.geteuid() != 0:
        raise BuildError("building the guest's file system needs root: sudo make hil")
    if missing:
        install_host_tools(missing)


async def build(kernel: Kernel, uml: UmlKernel | None, inputs: dict[str, str]) -> None:
    """Build everything below the work folder, then replace the previous image with it."""
    _unmount_left()
    shutil.rmtree(IMAGE, ignore_errors=True)
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    (BUILD / "build.log").unlink(missing_ok=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(build_kernel, kernel)
        nursery.start_soon(install_debian)
        nursery.start_soon(install_wheels)
        if uml is not None:
            nursery.start_soon(_try_uml, uml, inputs)
    check_python()
    new = WORK / "image"
    new.mkdir()
    async with step("disk image"):
        complete_tree()
        missing = await install_modules(kernel, TREE)
        if uml is not None and not inputs["uml_error"]:
            await install_uml(uml, TREE, new)
        (BUILD / "missing-modules").write_text("".join(f"{name}\n" for name in missing))
        shutil.copy(kernel.tree / "boot" / f"vmlinuz-{kernel.release}", new / "vmlinuz")
        await make_initrd(kernel, new / "initrd.cpio")
        await make_disk(TREE, new / "root.ext4")
    async with step("guest started once, its state saved"):
        await save_state(new)
    (new / "inputs.json").write_text(json.dumps(inputs))
    new.rename(IMAGE)
    shutil.rmtree(WORK)


def _unmount_left() -> None:
    """Unmount /proc, /sys and /dev of a tree whose build was killed: deleting it would delete their content."""
    places = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for place in sorted((place for place in places if place.startswith(f"{WORK}/")), reverse=True):
        subprocess.run(["umount", place], check=True)


async def _try_uml(uml: UmlKernel, inputs: dict[str, str]) -> None:
    """Build the kernel of User-Mode Linux; if that fails, guests run in QEMU, and tests report why."""
    try:
        await build_uml(uml)
    except BuildError as error:
        _without_uml(error, inputs)


def _without_uml(error: BuildError, inputs: dict[str, str]) -> None:
    inputs["uml_error"] = str(error)
    print(f"    no kernel of User-Mode Linux, all guests will be in QEMU: {error}", flush=True)


def _inputs(kernel: Kernel, uml: UmlKernel | None) -> dict[str, str]:
    return {
        "files": inputs_digest(),
        "kernel": f"{kernel.image} {kernel.version}",
        "qemu": qemu_version(),
        "uml": uml.digest if uml else "",
        "uml_error": "",
    }


def _unchanged(inputs: dict[str, str]) -> bool:
    """Return whether the image was built from these inputs; a failed build with the same inputs is not repeated."""
    return {**built_from(), "uml_error": ""} == inputs


def hand_over() -> None:
    """Give the built files to the user on whose behalf root built them."""
    if "SUDO_UID" in os.environ:
        subprocess.run(["chown", "-R", f"{os.environ['SUDO_UID']}:{os.environ['SUDO_GID']}", str(BUILD)], check=True)


async def main() -> None:
    """Build the image unless it is current."""
    BUILD.mkdir(parents=True, exist_ok=True)
    check_platform()
    try:
        kernel = await newest_kernel()
    except BuildError:
        print("    looking for packages", flush=True)
        await command("apt-get", "update", "-qq")
        kernel = await newest_kernel()
    uml, error = None, None
    try:
        uml = await newest_uml()
    except BuildError as reason:
        error = reason
    inputs = _inputs(kernel, uml)
    if _unchanged(inputs):
        print(f"The guest image in {BUILD} is up to date.")
        return
    prepare_host(uml)
    inputs["qemu"] = qemu_version()  # it may just have been installed
    if error is not None:
        _without_uml(error, inputs)
    print(f"Building the guest image in {BUILD} ({kernel.image}); about a minute.", flush=True)
    start = time.monotonic()
    try:
        await build(kernel, uml, inputs)
    except* BuildError as errors:
        raise errors.exceptions[0] from None
    if reason := why_not_ready():
        raise BuildError(f"it was built, but tests would not use it: {reason}")
    hand_over()
    print(f"Built in {time.monotonic() - start:.0f} s.")


if __name__ == "__main__":
    try:
        trio.run(main)
    except BuildError as error:
        sys.exit(f"The guest image was not built: {error}")
