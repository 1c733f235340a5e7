"""The kernel of User-Mode Linux: Debian's source with our configuration and patches, built once per computer.

Debian's own kernel for User-Mode Linux has neither GPIO nor USB. The build is stored outside the checkout, in
$MACHINE_HIL_CACHE or ~/.cache/machine-runtime/hil, under a digest of all its inputs: the version of the source package,
the configuration, the patches and the compiler. A clean clone on the same computer reuses it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.hil.image.places import WORK
from tests.hil.image.steps import BuildError, command, install_host_tools, shell, step

HERE: Final = Path(__file__).parent
SOURCE: Final = "linux-source-6.12"
KERNEL: Final = "linux"
"""The name of the kernel in the image, and of the folder of its modules in the cache."""

TOOLS: Final = {"modprobe": "kmod", "ip": "iproute2", "unshare": "util-linux"}
"""Programs that guests need on this computer, and the Debian package of each."""

BUILD_TOOLS: Final = {
    **{name: name for name in ("make", "gcc", "flex", "bison", "bc", "patch")},
    "xz": "xz-utils",
    "strip": "binutils",
}
"""Programs needed to build the kernel."""

HEADERS: Final = {"/usr/include/stdio.h": "libc6-dev"}
UNUSED: Final = (
    *("Documentation/*/*", "tools/testing", "arch/[a-tv-w]*/*.[chS]", "arch/*.dts*", "drivers/gpu/*.[ch]"),
    *("drivers/net/ethernet/*.[ch]", "drivers/net/wireless/*/*/*.[ch]", "sound/*.[ch]"),
    *("fs/xfs/*.[ch]", "fs/btrfs/*.[ch]"),
)
"""Parts of the source that are not unpacked: their Kconfig files are read, their code is not compiled."""


@dataclass(frozen=True, slots=True)
class UmlKernel:
    """A kernel; `version` is that of the source package."""

    version: str
    compiler: str

    @property
    def digest(self) -> str:
        """Return a digest of all inputs of the kernel."""
        parts = [self.version.encode(), self.compiler.encode()]
        for path in (HERE / "kernel.config", *patches()):
            parts += [path.name.encode(), path.read_bytes()]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]

    @property
    def folder(self) -> Path:
        """Return its folder: `linux`, and below `modules` the modules for /usr/lib/modules."""
        return cache() / f"uml-{self.digest}"


def cache() -> Path:
    """Return the folder for files that are built once per computer."""
    if chosen := os.environ.get("MACHINE_HIL_CACHE"):
        return Path(chosen).resolve()
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "machine-runtime" / "hil"


def patches() -> list[Path]:
    """Return the patches of Debian's source, in order."""
    return sorted((HERE / "patches").glob("*.patch"))


async def newest_kernel() -> UmlKernel:
    """Return the kernel to build here; BuildError with a reason if it cannot be built."""
    if platform.machine() != "x86_64":
        raise BuildError(f"the kernel builds for amd64 only, and this is {platform.machine()}")
    policy = await command("apt-cache", "policy", SOURCE)
    candidate = re.search(r"Candidate: (\d\S*)", policy)
    if candidate is None:
        raise BuildError(f"apt has no package {SOURCE}: run `apt-get update`, on Debian 12 with its security updates")
    if shutil.which("gcc") is None:
        if os.geteuid() != 0:
            raise BuildError("gcc is not installed, and installing it needs root")
        install_host_tools({"gcc": "gcc"})
    return UmlKernel(candidate[1], (await command("gcc", "--version")).partition("\n")[0])


def missing_tools(kernel: UmlKernel) -> dict[str, str]:
    """Return what is missing here to build and start the kernel: programs or files, and their Debian packages."""
    missing = {tool: package for tool, package in TOOLS.items() if shutil.which(tool) is None}
    if not kernel.folder.exists():
        tools = {tool: package for tool, package in BUILD_TOOLS.items() if shutil.which(tool) is None}
        missing |= tools | {path: package for path, package in HEADERS.items() if not Path(path).exists()}
    return missing


async def build_uml(kernel: UmlKernel) -> None:
    """Build the kernel into its folder, unless it exists: 10 to 15 minutes of one processor."""
    if kernel.folder.exists():
        return
    work = WORK / "uml"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    async with step(f"User-Mode Linux built, to be kept in {cache()}"):
        await command("apt-get", "-q", "download", f"{SOURCE}={kernel.version}", cwd=work)
        [package] = work.glob("*.deb")
        await shell(
            """
            set -f  # the patterns are for tar
            mkdir source out
            dpkg-deb --fsys-tarfile "$DEB" | tar -xO "./usr/src/$NAME.tar.xz" | xz -T0 -dc |
                tar -x -C source --strip-components=1 --wildcards $UNUSED
            set +f
            rm "$DEB"
            for patch in $PATCHES; do patch -d source -p1 --no-backup-if-mismatch < "$patch"; done
            cp "$CONFIG" out/.config
            make -C source ARCH=um O="$PWD/out" olddefconfig
            make -C source ARCH=um O="$PWD/out" -j"$(nproc)" linux modules
            make -C source ARCH=um O="$PWD/out" INSTALL_MOD_PATH="$PWD/installed" INSTALL_MOD_STRIP=1 modules_install
            mkdir -p kept/modules
            strip -o "kept/$KERNEL" out/linux
            cp out/.config kept/config
            mv installed/lib/modules/* kept/modules/
            rm -f kept/modules/*/build kept/modules/*/source
            """,
            cwd=work,
            NAME=SOURCE,
            DEB=package,
            UNUSED=" ".join(f"--exclude={SOURCE}/{name}" for name in UNUSED),
            PATCHES=" ".join(map(str, patches())),
            CONFIG=HERE / "kernel.config",
            KERNEL=KERNEL,
        )
        _keep(work / "kept", kernel.folder)
    shutil.rmtree(work)


def _keep(made: Path, folder: Path) -> None:
    """Move the build into the cache in one step; another build of the same kernel may have finished first."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.copytree(made, part, symlinks=True)
    try:
        part.rename(folder)
    except OSError:
        shutil.rmtree(part)


async def install_uml(kernel: UmlKernel, tree: Path, image: Path) -> None:
    """Copy the kernel into the image and its modules into the guest's tree."""
    shutil.copy(kernel.folder / KERNEL, image / KERNEL)
    for modules in (kernel.folder / "modules").iterdir():
        target = tree / "usr" / "lib" / "modules" / modules.name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(modules, target)
        await command("depmod", "-b", tree, modules.name)


def why_not_startable() -> str:
    """Return why this process cannot start a guest of User-Mode Linux; empty if it can."""
    if os.geteuid() != 0:
        return "a guest of User-Mode Linux needs root here, for its network"
    missing = [tool for tool in ("setpriv", "unshare", "taskset", "ip") if shutil.which(tool) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "there is no /dev/net/tun"
    done = subprocess.run(["unshare", "--net", "--pid", "--fork", "true"], capture_output=True, text=True, check=False)
    return f"no namespaces: {done.stderr.strip()}" if done.returncode else ""
