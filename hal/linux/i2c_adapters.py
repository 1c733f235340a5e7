"""I2C adapters as sysfs shows them: finding one by number, path or name, and the kernel drivers on it."""

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
    """One adapter: the kernel's number, which may change when it is plugged again, and its driver's name for it."""

    number: int
    title: str = ""

    @property
    def name(self) -> str:
        """As the kernel calls it, and its node."""
        return f"i2c-{self.number}"

    def __str__(self) -> str:
        return f"{self.name} ({self.title})" if self.title else self.name


def adapters(sys: Path = SYS) -> list[Adapter]:
    """All of them, by number."""
    found = []
    for path in sys.glob("bus/i2c/devices/i2c-*"):
        if match := _NODE.fullmatch(path.name):
            try:
                found.append(Adapter(int(match[1]), (path / "name").read_text().strip()))
            except OSError:
                continue  # unplugged while we looked
    return sorted(found)


def find_adapter(name: str, sys: Path = SYS, dev: Path = DEV) -> Adapter:
    """The adapter that `name` means: a number (`1`), a node or a link to one, or (a part of) the adapter's own name.

    HalError: gone with what there is instead, unsupported if several fit.
    """
    there = adapters(sys)
    if name.startswith("/"):
        if not Path(name).exists():
            raise _missing(f"there is no {name}", there, dev)
        if (number := _NODE.fullmatch(Path(name).resolve().name)) is None:
            raise _missing(f"{name} is not an I2C node", there, dev)
        return _numbered(int(number[1]), there)
    if number := re.fullmatch(r"(?:i2c-)?(\d+)", name):
        adapter = _numbered(int(number[1]), there)
        if not (dev / adapter.name).exists():
            raise _missing(f"there is no {dev / adapter.name}", there, dev)
        return adapter
    matches = [adapter for adapter in there if adapter.title == name]
    matches = matches or [adapter for adapter in there if name.lower() in adapter.title.lower()]
    if len(matches) > 1:
        raise HalError(
            f"several I2C adapters are called {name!r}: {', '.join(map(str, matches))}",
            Fault.UNSUPPORTED,
            remedy="name one of them by its number, or by a link that stays the same",
        )
    if not matches:
        raise _missing(f"no I2C adapter is called {name!r}", there, dev)
    if not (dev / matches[0].name).exists():
        raise _missing(f"there is no {dev / matches[0].name}", there, dev)
    return matches[0]


def kernel_driver(adapter: int, address: int, sys: Path = SYS) -> str | None:
    """The kernel driver that has taken the address; None if none has."""
    try:
        return (sys / f"bus/i2c/devices/{adapter}-{address:04x}/driver").readlink().name
    except OSError:
        return None


def _numbered(number: int, there: list[Adapter]) -> Adapter:
    return next((adapter for adapter in there if adapter.number == number), Adapter(number))


def _missing(what: str, there: list[Adapter], dev: Path) -> HalError:
    if not there:
        remedy = "switch I2C on: `sudo raspi-config` (dtparam=i2c_arm=on in config.txt), or plug the adapter in"
        return HalError(f"{what}, and this computer has no I2C adapter", Fault.GONE, remedy=remedy)
    if not any(_NODE.fullmatch(path.name) for path in dev.glob("i2c-*")):
        remedy = "load the driver of these nodes: `sudo modprobe i2c-dev`, and name it in /etc/modules to keep it"
        return HalError(f"{what}: no I2C adapter has a node in {dev}", Fault.GONE, remedy=remedy)
    return HalError(
        f"{what}; there are {', '.join(map(str, there))}", Fault.GONE, remedy="plug it in, or name one of these"
    )
