"""I2C adapters from sysfs: look-up by number, path or name, and the kernel drivers of their devices."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hal.errors import Fault, HalError

SYS: Final = Path("/sys")
DEV: Final = Path("/dev")
_NODE: Final = re.compile(r"i2c-(\d+)")


@dataclass(frozen=True, slots=True, order=True)
class Adapter:
    """An adapter: the kernel's number, which may change when it is plugged in again, and its driver's name for it."""

    number: int
    title: str = ""

    @property
    def name(self) -> str:
        """The kernel's name for it, and the name of its node."""
        return f"i2c-{self.number}"

    def __str__(self) -> str:
        return f"{self.name} ({self.title})" if self.title else self.name


def adapters(sys: Path = SYS) -> list[Adapter]:
    """Return all adapters in the order of their numbers."""
    present = []
    for path in sys.glob("bus/i2c/devices/i2c-*"):
        if match := _NODE.fullmatch(path.name):
            try:
                present.append(Adapter(int(match[1]), (path / "name").read_text().strip()))
            except OSError:
                continue  # unplugged in the meantime
    return sorted(present)


def find_adapter(name: str, sys: Path = SYS, dev: Path = DEV) -> Adapter:
    """Return the adapter for a number (`1`), a node or a link to one, or the adapter's name or a part of it.

    HalError: gone (with a list of adapters), unsupported if several adapters match.
    """
    present = adapters(sys)
    if name.startswith("/"):
        if not Path(name).exists():
            raise _missing(f"there is no {name}", present, dev)
        if (number := _NODE.fullmatch(Path(name).resolve().name)) is None:
            raise _missing(f"{name} is not an I2C node", present, dev)
        return _numbered(int(number[1]), present)
    if number := re.fullmatch(r"(?:i2c-)?(\d+)", name):
        adapter = _numbered(int(number[1]), present)
        if not (dev / adapter.name).exists():
            raise _missing(f"there is no {dev / adapter.name}", present, dev)
        return adapter
    matches = [adapter for adapter in present if adapter.title == name]
    matches = matches or [adapter for adapter in present if name.lower() in adapter.title.lower()]
    if len(matches) > 1:
        raise HalError(
            f"several I2C adapters are called {name!r}: {', '.join(map(str, matches))}",
            Fault.UNSUPPORTED,
            remedy="use the number of one of them, or a stable link",
        )
    if not matches:
        raise _missing(f"no I2C adapter is called {name!r}", present, dev)
    if not (dev / matches[0].name).exists():
        raise _missing(f"there is no {dev / matches[0].name}", present, dev)
    return matches[0]


def kernel_driver(adapter: int, address: int, sys: Path = SYS) -> str | None:
    """Return the kernel driver that uses the address; None if none does."""
    try:
        return (sys / f"bus/i2c/devices/{adapter}-{address:04x}/driver").readlink().name
    except OSError:
        return None


def _numbered(number: int, present: list[Adapter]) -> Adapter:
    return next((adapter for adapter in present if adapter.number == number), Adapter(number))


def _missing(reason: str, present: list[Adapter], dev: Path) -> HalError:
    if not present:
        remedy = "enable I2C: `sudo raspi-config` (dtparam=i2c_arm=on in config.txt), or plug the adapter in"
        return HalError(f"{reason}, and this computer has no I2C adapter", Fault.GONE, remedy=remedy)
    if not any(_NODE.fullmatch(path.name) for path in dev.glob("i2c-*")):
        remedy = "load the driver of these nodes: `sudo modprobe i2c-dev`, and add it to /etc/modules"
        return HalError(f"{reason}: no I2C adapter has a node in {dev}", Fault.GONE, remedy=remedy)
    return HalError(
        f"{reason}; there are {', '.join(map(str, present))}", Fault.GONE, remedy="plug it in, or use one of these"
    )
