"""The platform and tags of this computer, by which a registry selects packages: `linux/aarch64` and `name:value`.

Tags are `name:value`: `distro`, `os_version` (major), `codename`; `pi` (its number) and `pifull` (with model) on a
Raspberry Pi; `jetpack` (major) and `l4t` on a Jetson; `cuda:true` and `cuda_version` (major) where CUDA is installed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

MODEL: Final = "proc/device-tree/model"  # Documentation/devicetree/usage-model.rst of Linux
DISTRIBUTION: Final = ("etc/os-release", "usr/lib/os-release")  # os-release(5)
TEGRA: Final = "etc/nv_tegra_release"
CUDA: Final = "usr/local/cuda/version.json"
JETPACK: Final = {32: 4, 34: 5, 35: 5, 36: 6, 38: 7}
"""The major release of JetPack for each major release of Jetson Linux (L4T), from NVIDIA's JetPack archive."""

_PI: Final = re.compile(
    r"Raspberry Pi (?:Compute Module (?P<module>\d)|Zero(?: (?P<zero>\d))?(?P<wireless> W)?"
    r"|(?P<number>\d+)?(?: ?Model (?P<model>[AB]))?(?P<plus> Plus)?)"
)
_RELEASE: Final = re.compile(r"# R(\d+) \(release\), REVISION: (\d+(?:\.\d+)*)")


def platform() -> str:
    """Return this computer's operating system and processor, as reported by the kernel."""
    return f"{system()}/{machine()}"


def system() -> str:
    """Return the operating system: linux, darwin or windows."""
    if sys.platform == "win32":
        return "windows"
    else:  # noqa: RET505 - the type checker reads only one of them
        return os.uname().sysname.lower()


def machine() -> str:
    """Return the processor, by the kernel's name: x86_64, aarch64."""
    if sys.platform == "win32":
        processor = os.environ.get("PROCESSOR_ARCHITECTURE", "AMD64").lower()
        return {"amd64": "x86_64", "arm64": "aarch64"}.get(processor, processor)
    else:  # noqa: RET505
        return os.uname().machine


@cache
def tags(root: Path = Path("/")) -> tuple[str, ...]:
    """Return the tags derived from the files below `root`, cached. Missing and unreadable files are ignored."""
    tags = [
        *_distribution(next(filter(None, (_read(root / name) for name in DISTRIBUTION)), "")),
        *pi_tags(_read(root / MODEL)),
        *jetson_tags(_read(root / TEGRA)),
        *cuda_tags(_read(root / CUDA)),
    ]
    return tuple(dict.fromkeys(tags))


def _distribution(text: str) -> Iterator[str]:
    values = {}
    for line in text.splitlines():
        name, sign, value = line.partition("=")
        if sign and not name.startswith("#"):
            try:
                values[name.strip()] = "".join(shlex.split(value))
            except ValueError:
                continue  # an unbalanced quotation mark
    for tag, name in (("distro", "ID"), ("os_version", "VERSION_ID"), ("codename", "VERSION_CODENAME")):
        value = values.get(name, "").partition(".")[0] if tag == "os_version" else values.get(name, "")
        if re.fullmatch(r"[0-9A-Za-z_.-]{1,40}", value):
            yield f"{tag}:{value}"


def pi_tags(model: str) -> Iterator[str]:
    """Return the tags of a device tree model: `Raspberry Pi 4 Model B Rev 1.4` gives pi:4 and pifull:4B."""
    match = _PI.match(model)
    if match is None:
        return
    if match["module"]:
        number, full = match["module"], f"CM{match['module']}"
    elif "Zero" in match[0]:
        number = f"0{match['zero'] or ''}"
        full = number + ("W" if match["wireless"] else "")
    else:
        number = match["number"] or "1"
        full = number + (match["model"] or "") + ("plus" if match["plus"] else "")
    yield f"pi:{number}"
    yield f"pifull:{full}"


def jetson_tags(release: str) -> Iterator[str]:
    """Return the tags of NVIDIA's release file: `# R36 (release), REVISION: 4.3` gives jetpack:6 and l4t:36.4.3."""
    match = _RELEASE.match(release)
    if match is None:
        return
    if jetpack := JETPACK.get(int(match[1])):
        yield f"jetpack:{jetpack}"
    yield f"l4t:{match[1]}.{match[2]}"


def cuda_tags(version: str) -> Iterator[str]:
    """Return the tags of CUDA's version file."""
    try:
        major = str(json.loads(version)["cuda"]["version"]).partition(".")[0]
    except (ValueError, KeyError, TypeError):
        return
    if major.isdigit():
        yield "cuda:true"
        yield f"cuda_version:{major}"


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(16384).decode("utf-8", "replace").rstrip("\0\n")
    except OSError:
        return ""
