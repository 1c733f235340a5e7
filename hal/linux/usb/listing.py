"""USB devices from sysfs: those that are plugged in, their ports, and the kernel drivers of their interfaces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hal.errors import Fault, HalError
from hal.ports.usb import UsbIdentity

SYS: Final = Path("/sys")


@dataclass(frozen=True, slots=True)
class Plugged:
    """A connected device: its complete identity, its current address on the bus, and its own name."""

    identity: UsbIdentity
    bus: int
    address: int
    title: str = ""

    def __str__(self) -> str:
        return f"{self.identity} ({self.title})" if self.title else str(self.identity)

    def node(self, dev: Path) -> Path:
        """Return the device node for programs."""
        return dev / f"bus/usb/{self.bus:03d}/{self.address:03d}"


def plugged(sys: Path = SYS) -> list[Plugged]:
    """Return all devices, including hubs, in the order of their ports."""
    devices = []
    for path in sorted((sys / "bus/usb/devices").glob("*")):
        try:
            vendor, product = (int((path / name).read_text(), 16) for name in ("idVendor", "idProduct"))
            bus, address = (int((path / name).read_text()) for name in ("busnum", "devnum"))
        except (OSError, ValueError):
            continue  # an interface, or unplugged in the meantime
        titles = [_text(path / "manufacturer"), _text(path / "product")]
        identity = UsbIdentity(vendor, product, _text(path / "serial"), path.name)
        devices.append(Plugged(identity, bus, address, " ".join(filter(None, titles))))
    return devices


def find_plugged(identity: UsbIdentity, sys: Path = SYS) -> Plugged:
    """Return the only device that matches. HalError with a list: gone if none does, unsupported if several do."""
    same_type = [
        device
        for device in plugged(sys)
        if (device.identity.vendor, device.identity.product) == (identity.vendor, identity.product)
    ]
    matches = [
        device
        for device in same_type
        if identity.serial in ("", device.identity.serial) and identity.port in ("", device.identity.port)
    ]
    if len(matches) == 1:
        return matches[0]
    listing = ", ".join(
        f"serial {device.identity.serial or '(none)'} at {device.identity.port}" for device in same_type
    )
    if matches:
        raise HalError(
            f"several devices match {identity}: {listing}",
            Fault.UNSUPPORTED,
            remedy="add the serial number or the port",
        )
    if same_type:
        raise HalError(
            f"{identity} is not plugged in; there are: {listing}", Fault.GONE, remedy="plug it in, or use one of these"
        )
    raise HalError(f"{identity} is not plugged in", Fault.GONE, remedy="plug it in, or check the output of `lsusb`")


def kernel_drivers(device: Plugged, sys: Path = SYS) -> dict[int, str]:
    """Return the kernel drivers by the number of their interface; `usbfs` stands for another program."""
    drivers = {}
    for path in (sys / "bus/usb/devices").glob(f"{device.identity.port}:*"):
        try:
            drivers[int((path / "bInterfaceNumber").read_text(), 16)] = (path / "driver").readlink().name
        except (OSError, ValueError):
            continue
    return drivers


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
