"""USB devices as sysfs shows them: which ones are plugged in, where, and which kernel drivers have their interfaces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hal.errors import Fault, HalError
from hal.ports.usb import UsbIdentity

SYS: Final = Path("/sys")


@dataclass(frozen=True, slots=True)
class Plugged:
    """A device that is there: its complete identity, its place on the bus now, and what it calls itself."""

    identity: UsbIdentity
    bus: int
    address: int
    title: str = ""

    def __str__(self) -> str:
        return f"{self.identity} ({self.title})" if self.title else str(self.identity)

    def node(self, dev: Path) -> Path:
        """Where the kernel lets programs at it."""
        return dev / f"bus/usb/{self.bus:03d}/{self.address:03d}"


def plugged(sys: Path = SYS) -> list[Plugged]:
    """All devices, hubs among them, by port."""
    found = []
    for path in sorted((sys / "bus/usb/devices").glob("*")):
        try:
            vendor, product = (int((path / name).read_text(), 16) for name in ("idVendor", "idProduct"))
            bus, address = (int((path / name).read_text()) for name in ("busnum", "devnum"))
        except (OSError, ValueError):
            continue  # an interface, or unplugged while we looked
        words = [_text(path / "manufacturer"), _text(path / "product")]
        identity = UsbIdentity(vendor, product, _text(path / "serial"), path.name)
        found.append(Plugged(identity, bus, address, " ".join(word for word in words if word)))
    return found


def find_plugged(identity: UsbIdentity, sys: Path = SYS) -> Plugged:
    """The one device that fits. HalError: gone if none does, unsupported if several do, both with what is there."""
    alike = [
        device
        for device in plugged(sys)
        if (device.identity.vendor, device.identity.product) == (identity.vendor, identity.product)
    ]
    matches = [
        device
        for device in alike
        if identity.serial in ("", device.identity.serial) and identity.port in ("", device.identity.port)
    ]
    if len(matches) == 1:
        return matches[0]
    there = ", ".join(f"serial {device.identity.serial or '(none)'} at {device.identity.port}" for device in alike)
    if matches:
        raise HalError(
            f"several devices are {identity}: {there}", Fault.UNSUPPORTED, remedy="give the serial number or the port"
        )
    if alike:
        raise HalError(
            f"{identity} is not plugged in; there are: {there}", Fault.GONE, remedy="plug it in, or name one of these"
        )
    raise HalError(f"{identity} is not plugged in", Fault.GONE, remedy="plug it in, or look at `lsusb`")


def kernel_drivers(device: Plugged, sys: Path = SYS) -> dict[int, str]:
    """The kernel's drivers by the number of the interface they have; `usbfs` is another program."""
    found = {}
    for path in (sys / "bus/usb/devices").glob(f"{device.identity.port}:*"):
        try:
            found[int((path / "bInterfaceNumber").read_text(), 16)] = (path / "driver").readlink().name
        except (OSError, ValueError):
            continue
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
