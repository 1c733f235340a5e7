"""What kind of computer this is, in the words by which a registry chooses packages: `linux/aarch64` and tags.

Tags are `name:value`: `distro`, `os_version` (major), `codename`; `pi` (its number) and `pifull` (with model) on a
Raspberry Pi; `jetpack` (major) and `l4t` on a Jetson; `cuda:true` and `cuda_version` (major) where CUDA is installed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

MODEL: Final = "proc/device-tree/model"  # Documentation/devicetree/usage-model.rst of Linux
DISTRIBUTION: Final = ("etc/os-release", "usr/lib/os-release")  # os-release(5)
TEGRA: Final = "etc/nv_tegra_release"
CUDA: Final = "usr/local/cuda/version.json"
JETPACK: Final = {32: 4, 34: 5, 35: 5, 36: 6, 38: 7}
"""Major release of Jetson Linux (L4T) and of the JetPack that has it: NVIDIA's JetPack archive."""

_PI: Final = re.compile(
    r"Raspberry Pi (?:Compute Module (?P<module>\d)|Zero(?: (?P<zero>\d))?(?P<wireless> W)?"
    r"|(?P<number>\d+)?(?: ?Model (?P<model>[AB]))?(?P<plus> Plus)?)"
)
_RELEASE: Final = re.compile(r"# R(\d+) \(release\), REVISION: (\d+(?:\.\d+)*)")


def platform() -> str:
    """This computer's system and processor, as the kernel says them."""
    kernel = os.uname()
    return f"{kernel.sysname.lower()}/{kernel.machine}"


@cache
def tags(root: Path = Path("/")) -> tuple[str, ...]:
    """What the files below `root` tell, read once. What is not there, or cannot be read, tells nothing."""
    found = [
        *_distribution(next(filter(None, (_read(root / name) for name in DISTRIBUTION)), "")),
        *pi_tags(_read(root / MODEL)),
        *jetson_tags(_read(root / TEGRA)),
        *cuda_tags(_read(root / CUDA)),
    ]
    return tuple(dict.fromkeys(found))


def _distribution(text: str) -> Iterator[str]:
    values = {}
    for line in text.splitlines():
        name, sign, value = line.partition("=")
        if sign and not name.startswith("#"):
            try:
                values[name.strip()] = "".join(shlex.split(value))
            except ValueError:
                continue  # a quotation mark that is not closed
    for tag, name in (("distro", "ID"), ("os_version", "VERSION_ID"), ("codename", "VERSION_CODENAME")):
        value = values.get(name, "").partition(".")[0] if tag == "os_version" else values.get(name, "")
        if re.fullmatch(r"[0-9A-Za-z_.-]{1,40}", value):
            yield f"{tag}:{value}"


def pi_tags(model: str) -> Iterator[str]:
    """Of the device tree's model: `Raspberry Pi 4 Model B Rev 1.4` is pi:4 and pifull:4B."""
    found = _PI.match(model)
    if found is None:
        return
    if found["module"]:
        number, full = found["module"], f"CM{found['module']}"
    elif "Zero" in found[0]:
        number = f"0{found['zero'] or ''}"
        full = number + ("W" if found["wireless"] else "")
    else:
        number = found["number"] or "1"
        full = number + (found["model"] or "") + ("plus" if found["plus"] else "")
    yield f"pi:{number}"
    yield f"pifull:{full}"


def jetson_tags(release: str) -> Iterator[str]:
    """Of NVIDIA's release file: `# R36 (release), REVISION: 4.3` is jetpack:6 and l4t:36.4.3."""
    found = _RELEASE.match(release)
    if found is None:
        return
    if jetpack := JETPACK.get(int(found[1])):
        yield f"jetpack:{jetpack}"
    yield f"l4t:{found[1]}.{found[2]}"


def cuda_tags(version: str) -> Iterator[str]:
    """Of CUDA's version file."""
    try:
        found = str(json.loads(version)["cuda"]["version"]).partition(".")[0]
    except (ValueError, KeyError, TypeError):
        return
    if found.isdigit():
        yield "cuda:true"
        yield f"cuda_version:{found}"


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(16384).decode("utf-8", "replace").rstrip("\0\n")
    except OSError:
        return ""
