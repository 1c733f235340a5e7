"""Which serial ports this computer has, by names that survive another plug and another order of probing: from sysfs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hal.errors import Fault, HalError
from hal.ports.serial import SerialIdentity

ROOT: Final = Path("/")
_PLUGGABLE: Final = ("ttyUSB", "ttyACM")  # numbered in the order of plugging, so the number means nothing
_UNKNOWN_UART: Final = "0"  # PORT_UNKNOWN of linux/serial_core.h: a number without a chip behind it


@dataclass(frozen=True, slots=True)
class SerialPort:
    """One port: its node, its stable names (the best first) and, if it is a USB device's, which one."""

    path: str  # /dev/ttyUSB0
    stable: tuple[str, ...] = ()  # /dev/serial/by-id/..., /dev/serial/by-path/...
    identity: SerialIdentity | None = None
    title: str = ""  # what the device calls itself

    @property
    def best(self) -> str:
        """The name to write into a configuration."""
        return self.stable[0] if self.stable else self.path

    def __str__(self) -> str:
        return f"{self.best} ({self.identity})" if self.identity else self.best


def is_stable(path: str) -> bool:
    """Whether a path still means the same device after it was plugged in again."""
    return not Path(path).name.startswith(_PLUGGABLE)


def serial_ports(root: Path = ROOT) -> list[SerialPort]:
    """Every port with hardware behind it, ordered by path. `root` is where /sys and /dev are."""
    links = dict(_links(root))
    return [_port(tty, root, links) for tty in sorted((root / "sys/class/tty").glob("*")) if _is_real(tty)]


def find_serial_port(identity: SerialIdentity, root: Path = ROOT) -> SerialPort:
    """The one port that fits; HalError (gone) if none does, (busy) if several do, naming what is there."""
    ports = serial_ports(root)
    fitting = [port for port in ports if port.identity is not None and identity.fits(port.identity)]
    if not fitting:
        raise HalError(f"no serial port belongs to {identity}; {listed(ports)}", Fault.GONE)
    if len(fitting) > 1:
        raise HalError(
            f"{len(fitting)} serial ports fit {identity}: {', '.join(map(str, fitting))}",
            Fault.UNSUPPORTED,
            remedy="add a serial number or the interface, or use one of these paths",
        )
    return fitting[0]


def identity_of(device: int, root: Path = ROOT) -> SerialIdentity | None:
    """Which USB device is behind the character device numbered `device` (st_rdev) now; None for another port."""
    place = root / f"sys/dev/char/{os.major(device)}:{os.minor(device)}/device"
    found = _usb(place)
    return found[0] if found else None


def listed(ports: list[SerialPort]) -> str:
    """What there is, in words."""
    return f"there are {', '.join(map(str, ports))}" if ports else "there are no serial ports"


def _is_real(tty: Path) -> bool:
    return (tty / "device").exists() and _text(tty / "type") != _UNKNOWN_UART


def _port(tty: Path, root: Path, links: dict[str, list[str]]) -> SerialPort:
    usb = _usb(tty / "device")
    return SerialPort(
        f"/dev/{tty.name}",
        tuple(links.get(tty.name, ())),
        usb[0] if usb else None,
        usb[1] if usb else "",
    )


def _usb(device: Path) -> tuple[SerialIdentity, str] | None:
    """The USB interface and device above a port in the tree of devices."""
    interface: int | None = None
    place = Path(os.path.realpath(device))
    for above in (place, *place.parents):
        if (number := _text(above / "bInterfaceNumber")) and interface is None:
            interface = int(number, 16)
        if vendor := _text(above / "idVendor"):
            product, serial = _text(above / "idProduct"), _text(above / "serial")
            title = " ".join(filter(None, (_text(above / "manufacturer"), _text(above / "product"))))
            return SerialIdentity(int(vendor, 16), int(product or "0", 16), serial, interface), title
    return None


def _links(root: Path) -> Iterator[tuple[str, list[str]]]:
    """By name of a node: the links that udev made for it."""
    found: dict[str, list[str]] = {}
    for kind in ("by-id", "by-path"):
        for link in sorted((root / "dev/serial" / kind).glob("*")):
            found.setdefault(Path(os.path.realpath(link)).name, []).append(f"/dev/serial/{kind}/{link.name}")
    yield from found.items()


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""
