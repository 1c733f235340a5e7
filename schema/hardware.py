"""Which device an entry means, and its settings: values that configurations and the ports of hal share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Bias = Literal["as_is", "none", "up", "down"]


Parity = Literal["none", "even", "odd"]


@dataclass(frozen=True, slots=True)
class SerialSettings:
    """Settings of a serial line."""

    baud: int = 115200  # bits per second
    bits: Literal[5, 6, 7, 8] = 8
    parity: Parity = "none"
    stop_bits: Literal[1, 2] = 1
    hardware_flow: bool = False  # RTS/CTS
    software_flow: bool = False  # XON/XOFF


@dataclass(frozen=True, slots=True)
class SerialIdentity:
    """Selects a port by its USB device; fields that are None or empty match any value.

    `interface` is the number of the USB interface, from 0, to distinguish several ports of a device.
    """

    vendor: int | None = None
    product: int | None = None
    serial: str = ""
    interface: int | None = None

    def __str__(self) -> str:
        ids = [f"{number:04x}" if number is not None else "any" for number in (self.vendor, self.product)]
        serial = f" serial {self.serial}" if self.serial else ""
        interface = f" interface {self.interface}" if self.interface is not None else ""
        return f"USB {':'.join(ids)}{serial}{interface}"

    def fits(self, port: SerialIdentity) -> bool:
        """Return whether a port, given by its complete identity, matches."""
        return (
            self.vendor in (None, port.vendor)
            and self.product in (None, port.product)
            and self.serial in ("", port.serial)
            and self.interface in (None, port.interface)
        )


@dataclass(frozen=True, slots=True)
class ControlsIdentity:
    """Selects a device by path, or by its properties; the first gamepad if all fields are empty.

    `name` is the device's own name, `serial` its unique id (usually a Bluetooth address).
    """

    path: str = ""
    name: str = ""
    vendor: int | None = None
    product: int | None = None
    serial: str = ""

    def __str__(self) -> str:
        if self.path:
            return self.path
        ids = [f"{number:04x}" if number is not None else "any" for number in (self.vendor, self.product)]
        parts = [repr(self.name)] if self.name else []
        parts += [":".join(ids)] if (self.vendor, self.product) != (None, None) else []
        parts += [f"serial {self.serial}"] if self.serial else []
        return " ".join(parts) or "any gamepad"

    def fits(self, device: ControlsIdentity) -> bool:
        """Return whether a device, given by its complete identity, matches; the path is ignored."""
        return (
            self.name in ("", device.name)
            and self.vendor in (None, device.vendor)
            and self.product in (None, device.product)
            and self.serial in ("", device.serial)
        )


@dataclass(frozen=True, slots=True)
class UsbIdentity:
    """Selects a device by vendor and product, and to distinguish several of them, by serial number or physical port.

    `port` is the kernel's name of the socket (`1-1.4`), which does not change.
    """

    vendor: int
    product: int
    serial: str = ""
    port: str = ""

    def __str__(self) -> str:
        place = f" at {self.port}" if self.port else ""
        return f"USB {self.vendor:04x}:{self.product:04x}{f' serial {self.serial}' if self.serial else ''}{place}"


PixelFormat = Literal["mjpeg", "yuyv", "nv12", "rgb24", "bgr24", "grey"]


@dataclass(frozen=True, slots=True)
class VideoSettings:
    """Requested settings; for an empty format and zeros, the device decides."""

    format: PixelFormat | Literal[""] = ""
    width: int = 0  # pixels
    height: int = 0  # pixels
    rate: float = 0.0  # frames per second
