"""The serial ports of this computer, from sysfs, with names that do not depend on the order of plugging."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hal.errors import Fault, HalError
from hal.ports.serial import SerialIdentity

ROOT: Final = Path("/")
_PLUGGABLE: Final = ("ttyUSB", "ttyACM")  # numbered in the order of plugging, so their numbers are not stable
_UNKNOWN_UART: Final = "0"  # PORT_UNKNOWN of linux/serial_core.h: a node without hardware


@dataclass(frozen=True, slots=True)
class SerialPort:
    """A port: its node, its stable names (the best first) and, for a USB device, its identity."""

    path: str  # /dev/ttyUSB0
    stable: tuple[str, ...] = ()  # /dev/serial/by-id/..., /dev/serial/by-path/...
    identity: SerialIdentity | None = None
    title: str = ""  # the device's own name

    @property
    def best(self) -> str:
        """The path to use in a configuration."""
        return self.stable[0] if self.stable else self.path

    def __str__(self) -> str:
        return f"{self.best} ({self.identity})" if self.identity else self.best


def is_stable(path: str) -> bool:
    """Return whether a path refers to the same device after it was plugged in again."""
    return not Path(path).name.startswith(_PLUGGABLE)


def serial_ports(root: Path = ROOT) -> list[SerialPort]:
    """Return all ports that belong to hardware, ordered by path. `root` contains /sys and /dev."""
    links = dict(_links(root))
    return [_port(tty, root, links) for tty in sorted((root / "sys/class/tty").glob("*")) if _is_real(tty)]


def find_serial_port(identity: SerialIdentity, root: Path = ROOT) -> SerialPort:
    """Return the only port that matches; HalError with a list: gone if none does, unsupported if several do."""
    ports = serial_ports(root)
    matches = [port for port in ports if port.identity is not None and identity.fits(port.identity)]
    if not matches:
        raise HalError(f"no serial port belongs to {identity}; {listed(ports)}", Fault.GONE)
    if len(matches) > 1:
        raise HalError(
            f"{len(matches)} serial ports match {identity}: {', '.join(map(str, matches))}",
            Fault.UNSUPPORTED,
            remedy="add a serial number or the interface, or use one of these paths",
        )
    return matches[0]


def identity_of(device: int, root: Path = ROOT) -> SerialIdentity | None:
    """Return the USB device of the character device with the number `device` (st_rdev); None if it is not USB."""
    usb = _usb(root / f"sys/dev/char/{os.major(device)}:{os.minor(device)}/device")
    return usb[0] if usb else None


def listed(ports: list[SerialPort]) -> str:
    """Return a text that lists the ports."""
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
    """Return the identity and title of the USB device that a port is part of."""
    interface: int | None = None
    path = Path(os.path.realpath(device))
    for ancestor in (path, *path.parents):
        if (number := _text(ancestor / "bInterfaceNumber")) and interface is None:
            interface = int(number, 16)
        if vendor := _text(ancestor / "idVendor"):
            product, serial = _text(ancestor / "idProduct"), _text(ancestor / "serial")
            title = " ".join(filter(None, (_text(ancestor / "manufacturer"), _text(ancestor / "product"))))
            return SerialIdentity(int(vendor, 16), int(product or "0", 16), serial, interface), title
    return None


def _links(root: Path) -> Iterator[tuple[str, list[str]]]:
    """Iterate over the names of nodes with the links that udev has created for them."""
    links: dict[str, list[str]] = {}
    for kind in ("by-id", "by-path"):
        for link in sorted((root / "dev/serial" / kind).glob("*")):
            links.setdefault(Path(os.path.realpath(link)).name, []).append(f"/dev/serial/{kind}/{link.name}")
    yield from links.items()


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""


def serial_port_paths(root: Path = ROOT) -> list[str]:
    """Return the paths of the USB serial ports, stable ones if available."""
    return sorted(port.best for port in serial_ports(root) if port.identity is not None)
