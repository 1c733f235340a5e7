"""The guest's kernel: Debian's own, and from its source the two modules that Debian does not build.

gpio-sim makes GPIO chips whose lines are pulled and read from user space. Debian's configuration has neither it nor
CONFIG_IRQ_SIM, so irq_sim.c is linked into the module; `irq_to_desc` is not exported to modules and
`generic_handle_irq` does the same there.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.hil.image.contents import BOOT_MODULES, MODULES, WARM_MODULES
from tests.hil.image.places import WORK
from tests.hil.image.steps import BuildError, command, shell, step


@dataclass(frozen=True, slots=True)
class Kernel:
    """Names of Debian's packages for one kernel; `release` is what `uname -r` prints."""

    release: str
    version: str

    @property
    def image(self) -> str:
        return f"linux-image-{self.release}"

    @property
    def tree(self) -> Path:
        """Return the unpacked image, with the modules built here."""
        return WORK / "kernel"

    @property
    def modules(self) -> Path:
        return self.tree / "lib" / "modules" / self.release


async def newest_kernel() -> Kernel:
    """Return the kernel that linux-image-amd64 currently depends on."""
    depends = await command("apt-cache", "depends", "linux-image-amd64")
    release = re.search(r"Depends: linux-image-(\S+)", depends)
    if release is None:
        raise BuildError("apt knows no linux-image-amd64: run `apt-get update`, on Debian for amd64")
    policy = await command("apt-cache", "policy", f"linux-image-{release[1]}")
    candidate = re.search(r"Candidate: (\S+)", policy)
    return Kernel(release[1], candidate[1] if candidate else "")


async def build_kernel(kernel: Kernel) -> None:
    """Download the kernel, unpack it, and add the missing modules in the work folder."""
    downloads, headers, source = WORK / "debs", WORK / "headers", WORK / "source"
    for folder in (downloads, headers, source, kernel.tree):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    shown = await command("apt-cache", "show", f"linux-headers-{kernel.release}")
    kbuild = re.search(r"linux-kbuild-([0-9.]+)", shown)
    if kbuild is None:
        raise BuildError(f"linux-headers-{kernel.release} names no linux-kbuild package")
    common = f"linux-headers-{kernel.release.removesuffix('-amd64')}-common"
    async with step("kernel, headers and source downloaded"):
        names = [kernel.image, f"linux-headers-{kernel.release}", common, kbuild[0], f"linux-source-{kbuild[1]}"]
        await command("apt-get", "-q", "download", *names, cwd=downloads)
    async with step("kernel unpacked"):
        await shell(
            """
            dpkg -x debs/linux-image-*.deb kernel
            for deb in debs/linux-headers-* debs/linux-kbuild-*; do dpkg -x "$deb" headers; done
            dpkg-deb --fsys-tarfile debs/linux-source-*.deb | tar -xO "./usr/src/$NAME.tar.xz" | xz -T0 -dc |
                tar -x -C source --strip-components=1 "$NAME/drivers/gpio" "$NAME/kernel/irq" \\
                "$NAME/drivers/usb/gadget" "$NAME/drivers/hwmon" "$NAME/drivers/pwm"
            """,
            cwd=WORK,
            NAME=f"linux-source-{kbuild[1]}",
        )
    async with step("gpio-sim and three more modules built"):
        await build_out_of_tree(kernel, headers, source)


async def build_out_of_tree(kernel: Kernel, headers: Path, source: Path) -> None:
    """Build the modules that Debian omits with the stock headers and add them to the kernel's modules."""
    here = headers / "usr" / "src" / f"linux-headers-{kernel.release}"
    makefile = here / "Makefile"
    makefile.write_text(makefile.read_text().replace("include /usr/src/", f"include {headers}/usr/src/"))
    work = WORK / "out-of-tree"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    shutil.copy(source / "drivers/gpio/gpiolib.h", work)
    shutil.copy(source / "drivers/gpio/gpio-sim.c", work / "gpio_sim_main.c")
    for path in ("drivers/usb/gadget/legacy/raw_gadget.c", "drivers/hwmon/ina2xx.c", "drivers/pwm/pwm-pca9685.c"):
        shutil.copy(source / path, work)
    irq_sim = (source / "kernel/irq/irq_sim.c").read_text()
    patched = irq_sim.replace("handle_simple_irq(irq_to_desc(irqnum))", "generic_handle_irq(irqnum)")
    (work / "gpio_sim_irq.c").write_text(patched)
    (work / "Makefile").write_text(
        "obj-m := gpio-sim.o raw_gadget.o ina2xx.o pwm-pca9685.o\ngpio-sim-y := gpio_sim_main.o gpio_sim_irq.o\n",
    )
    await command("make", "-C", here, f"M={work}", "modules")
    await shell(
        'strip -g *.ko; mkdir -p "$TO/extra"; cp *.ko "$TO/extra/"; depmod -b "$TREE" "$RELEASE"',
        cwd=work,
        TO=kernel.modules,
        TREE=kernel.tree,
        RELEASE=kernel.release,
    )


async def install_modules(kernel: Kernel, root: Path) -> list[str]:
    """Copy modules and their dependencies into the guest's tree; return the names of those that do not exist."""
    missing = [name for name in (*WARM_MODULES, *MODULES) if not await _paths(kernel, name)]
    names = [name for name in (*WARM_MODULES, *MODULES) if name not in missing]
    target = root / "usr" / "lib" / "modules" / kernel.release
    shutil.rmtree(target, ignore_errors=True)
    for path in await _paths(kernel, *names):
        copy = target / path.relative_to(kernel.modules)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    for path in (*kernel.modules.glob("modules.builtin*"), kernel.modules / "modules.order"):
        shutil.copy2(path, target)
    await command("depmod", "-b", root, kernel.release)
    return missing


async def boot_modules(kernel: Kernel, folder: Path) -> list[str]:
    """Copy the modules that mount the disk into `folder`; return their file names in load order."""
    order = []
    for path in await _paths(kernel, *BOOT_MODULES):
        if "intel" in path.name:
            continue
        copy = folder / path.name
        shutil.copy(path, copy)
        await command("strip", "-g", copy)
        order.append(copy.name)
    return order


async def _paths(kernel: Kernel, *names: str) -> list[Path]:
    """Return the files of modules and of their dependencies, in load order; nothing if one is unknown."""
    try:
        shown = await command("modprobe", "-a", "-d", kernel.tree, "-S", kernel.release, "--show-depends", *names)
    except BuildError:
        return []
    paths = [line.split()[1] for line in shown.splitlines() if line.startswith("insmod ")]
    return [Path(path) for path in dict.fromkeys(paths)]
