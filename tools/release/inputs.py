"""What a release is made of: Debian's packages of the interpreter, and the wheels of requirements/run.lock."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

DISTRIBUTION: Final = "machine-runtime"
EXTRAS: Final = ("webrtc",)
"""Extras that releases contain."""

SUITE: Final = "bookworm"
DEBIAN: Final[Mapping[str, str]] = {"x86_64": "amd64", "aarch64": "arm64"}
"""Debian's name of each processor for which releases are built."""

_PACKAGES: Final = ("python3.11-minimal", "libpython3.11-stdlib", "libstdc++6", "libgcc-s1", "zlib1g")
_GLIBC: Final = range(5, 37)  # minor versions of the platforms of wheels that may be used: up to that of SUITE
_TOOLS: Final = {"mmdebstrap": "mmdebstrap", "patchelf": "patchelf", "readelf": "binutils"}


def missing_tools() -> list[str]:
    """Return the Debian packages that a build needs and this computer lacks."""
    return [package for tool, package in _TOOLS.items() if shutil.which(tool) is None]


def fetch_debian(machine: str, folder: Path) -> dict[str, str]:
    """Unpack the interpreter's packages for a processor into `folder`, and return their versions.

    Nothing of them is executed, so any processor will do. Takes some 10 seconds, mostly for the download.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _run(
        *("mmdebstrap", "--quiet", "--variant=extract", "--format=directory"),
        *(f"--architectures={DEBIAN[machine]}", f"--include={','.join(_PACKAGES)}", SUITE, str(folder)),
    )
    logs = folder.glob("usr/share/doc/*/changelog.Debian*.gz")
    return {f"debian:{path.parent.name}": _newest(gzip.open(path, "rt").readline()) for path in sorted(logs)}


def _newest(line: str) -> str:
    """Return the version in the first line of a changelog of Debian: `name (version) suite; urgency=medium`."""
    return line.partition("(")[2].partition(")")[0]


def fetch_packages(machine: str, folder: Path, root: Path) -> dict[str, str]:
    """Install the locked wheels for a processor, and the sources in `root`, into `folder`; return their versions."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = closure(DISTRIBUTION, lambda name: metadata.requires(name) or (), machine, EXTRAS)
    lock = folder.with_suffix(".lock")
    lock.write_text("".join(locked((root / "requirements/run.lock").read_text(), names - {DISTRIBUTION})))
    platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in _GLIBC]
    install = ("install", "--quiet", "--no-deps", "--no-compile", "--disable-pip-version-check", f"--target={folder}")
    _pip(
        *(*install, "--require-hashes", "--only-binary=:all:", "--implementation=cp", "--python-version=3.11"),
        *(f"--platform=manylinux2014_{machine}", *platforms, "--requirement", str(lock)),
    )
    wheels = folder.with_suffix(".wheels")
    shutil.rmtree(wheels, ignore_errors=True)
    _pip(
        *("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"),
        *(f"--wheel-dir={wheels}", str(root)),
    )
    _pip(*install, "--no-index", *map(str, wheels.glob("*.whl")))
    return {f"python:{entry.name}": entry.version for entry in metadata.distributions(path=[str(folder)])}


def closure(
    name: str, requires: Callable[[str], Iterable[str]], machine: str, extras: Sequence[str] = ()
) -> frozenset[str]:
    """Return the normal names of a distribution with some extras, and of all that it needs on a processor."""
    environment = {"platform_machine": machine, "sys_platform": "linux", "python_version": "3.11"}
    names: set[tuple[str, str]] = set()
    waiting = [(canonicalize_name(name), extra) for extra in ("", *extras)]
    while waiting:
        if (entry := waiting.pop()) in names:
            continue
        names.add(entry)
        for text in requires(entry[0]):
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({**environment, "extra": entry[1]}):
                waiting += [(canonicalize_name(requirement.name), extra) for extra in ("", *requirement.extras)]
    return frozenset(entry[0] for entry in names)


def locked(text: str, names: frozenset[str]) -> Iterator[str]:
    """Yield the lines of a lock file that are about these distributions. LookupError if it lacks one of them."""
    absent, selected = set(names), False
    for line in text.splitlines(keepends=True):
        if match := re.match(r"([\w.-]+)==", line):
            name = canonicalize_name(match[1])
            selected = name in names
            absent.discard(name)
        if selected:
            yield line
    if absent:
        raise LookupError(f"requirements/run.lock lacks {', '.join(sorted(absent))}: run `make lock`")


def _pip(*arguments: str) -> None:
    _run(sys.executable, "-m", "pip", *arguments, environment={**os.environ, "SOURCE_DATE_EPOCH": "315532800"})


def _run(*command: str, environment: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {(done.stderr or done.stdout).strip()[-2000:]}")
