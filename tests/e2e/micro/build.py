"""Build MicroPython for the tests of the micro server: `make micro`, or `python -m tests.e2e.micro.build`.

Two programs are made in build/micro, from packages of Debian 13 which apt verifies. `stock` is Debian's own program,
which has TLS; it compiles the sources of `micro` itself. `firmware` is built from Debian's source package, with `micro`
frozen into it and objects of 32 bits, as on a microcontroller: its figures of the heap are those that count.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import trio

from tests.hil.image import places
from tests.hil.image.steps import BuildError, command, shell, step
from tests.hil.pi.packages import Packages

ROOT: Final = Path(__file__).resolve().parents[3]
BUILD: Final = ROOT / "build" / "micro"
RELEASE: Final = "trixie"  # Debian 13; 12 has no MicroPython
STOCK: Final = BUILD / "stock"
FIRMWARE: Final = BUILD / "firmware" / "micropython"
STAMP: Final = BUILD / "built-from"
NEEDED: Final = ("gcc", "make", "xz", "tar", "dpkg", "apt-get")
FREEZE: Final = 'include("$(MPY_DIR)/extmod/asyncio")\npackage("micro", base_path="{root}", opt=3)\n'

COMPILER: Final = (
    "gcc -m32 -static -idirafter /usr/include/x86_64-linux-gnu -isystem {root}/usr/include -B{root}/usr/lib32 "
    "-B{root}/usr/lib/gcc/x86_64-linux-gnu/{gcc}/32 -L{root}/usr/lib32 -L{root}/usr/lib/gcc/x86_64-linux-gnu/{gcc}/32"
)
OPTIONS: Final = (
    "MICROPY_PY_BTREE=0 MICROPY_PY_FFI=0 MICROPY_PY_SSL=0 MICROPY_SSL_MBEDTLS=0 CFLAGS_EXTRA=-Wno-error "
    "LDFLAGS_EXTRA=-Wl,--no-warnings"
)
"""The libraries for these parts are not in the source package; the stock program has TLS."""


def stock(*options: str) -> list[str]:
    """Return the words that start Debian's program, which needs libraries of its release."""
    libraries = STOCK / "usr" / "lib" / "x86_64-linux-gnu"
    loader = str(libraries / "ld-linux-x86-64.so.2")
    return [loader, "--library-path", str(libraries), str(STOCK / "usr" / "bin" / "micropython"), *options]


def firmware(*options: str) -> list[str]:
    """Return the words that start the program with `micro` frozen into it."""
    return [str(FIRMWARE), *options]


def digest() -> str:
    """Return a digest of all that the programs are built from, apart from Debian's packages."""
    total = hashlib.sha256()
    for path in sorted([*(ROOT / "micro").rglob("*.py"), Path(__file__)]):
        total.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return total.hexdigest()


def is_current() -> bool:
    """Return whether both programs are built from the present sources."""
    return STAMP.exists() and STAMP.read_text() == digest() and FIRMWARE.exists()


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other process builds."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


async def _fetch() -> None:
    """Download and unpack what is missing."""
    libraries, source = BUILD / "libraries", BUILD / "source"
    if (source / "done").exists():
        return
    gcc = (await command("gcc", "-dumpversion")).strip().partition(".")[0]
    release = await shell(". /etc/os-release; echo $VERSION_CODENAME")
    for folder in (STOCK, libraries, source):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    with tempfile.TemporaryDirectory(dir=BUILD) as apt:
        async with step("the program and the source package of Debian 13"):
            packages = Packages(Path(apt) / "13", "amd64", [RELEASE], sources=True)
            await packages.update()
            await packages.unpack(STOCK, "micropython")
            await packages.source(source, "micropython")
        async with step("libraries for programs of 32 bits"):
            packages = Packages(Path(apt) / "own", "amd64", [release.strip()])
            await packages.update()
            names = ("libc6-dev-i386", f"lib32gcc-{gcc}-dev", "libc6-i386")
            await packages.unpack(libraries, *names, closure=False)
    await shell('tar --strip-components=1 -C "$SOURCE" -xf "$SOURCE"/micropython_*.orig.tar.xz', SOURCE=source)
    (source / "lib" / "micropython-lib").mkdir(exist_ok=True)
    (source / "lib" / "micropython-lib" / "README.md").touch()  # the makefile looks for it; nothing of it is used
    async with step("its compiler"):
        await shell("make -s -j2 -C mpy-cross", cwd=source)
    (source / "done").write_text(gcc)


async def build() -> None:
    """Build both programs. BuildError if that is not possible here."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing or platform.machine() != "x86_64":
        raise BuildError(f"needs Debian on amd64{' with ' + ', '.join(missing) if missing else ''}")
    places.BUILD.mkdir(parents=True, exist_ok=True)  # for the log of the steps
    await _fetch()
    source = BUILD / "source"
    manifest = BUILD / "manifest.py"
    manifest.write_text(FREEZE.format(root=ROOT))
    compiler = COMPILER.format(root=BUILD / "libraries", gcc=(source / "done").read_text())
    async with step("the firmware"):
        await shell(
            f'make -s -j2 -C ports/unix BUILD=build-micro CC="$COMPILER" {OPTIONS} FROZEN_MANIFEST="$MANIFEST"',
            cwd=source,
            COMPILER=compiler,
            MANIFEST=manifest,
        )
    FIRMWARE.parent.mkdir(exist_ok=True)
    shutil.copy(source / "ports" / "unix" / "build-micro" / "micropython", FIRMWARE.with_suffix(".new"))
    FIRMWARE.with_suffix(".new").replace(FIRMWARE)
    STAMP.write_text(digest())


def make_ready() -> str:
    """Build what is not current, and return why that is not possible; empty if both programs can be used."""
    with _alone():
        if is_current():
            return ""
        problem = ""
        try:
            trio.run(build)
        except* (BuildError, OSError) as errors:
            error: BaseException = errors
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            problem = f"MicroPython was not built: {error}"
        return problem


@functools.cache
def why_not_ready() -> str:
    """Build what is not current, in a process of its own; return why that is not possible, empty if it is."""
    if is_current():
        return ""
    done = subprocess.run([sys.executable, "-m", __name__], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stderr.strip() or f"status {done.returncode}" if done.returncode else ""


if __name__ == "__main__":
    begin = time.monotonic()
    print("Building MicroPython with the micro server; less than a minute the first time.", flush=True)
    if problem := make_ready():
        sys.exit(problem)
    print(f"Ready after {time.monotonic() - begin:.0f} s.")
