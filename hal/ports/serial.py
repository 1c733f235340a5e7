"""Serial ports: plain byte streams.

An open port is a `trio.abc.Stream`: `receive_some` returns the received bytes, `send_all` returns when the kernel has
accepted all data, `aclose` may be called at any time, and waiting tasks then raise `trio.ClosedResourceError`. If the
device vanishes, HalError (gone) is raised; a read never returns empty data, since a serial line has no end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
