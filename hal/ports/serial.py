"""Serial port: a stream of bytes and nothing else.

An open port is a `trio.abc.Stream`: `receive_some` returns what has arrived, `send_all` returns when the kernel has
taken everything, `aclose` may be called at any time and wakes whoever waits with `trio.ClosedResourceError`. A device
that vanishes raises HalError (gone), never an empty read: a serial line has no end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import trio

Parity = Literal["none", "even", "odd"]


@dataclass(frozen=True, slots=True)
class SerialSettings:
    """How bits are put on the wire."""

    baud: int = 115200  # bits per second
    bits: Literal[5, 6, 7, 8] = 8
    parity: Parity = "none"
    stop_bits: Literal[1, 2] = 1
    hardware_flow: bool = False  # RTS/CTS
    software_flow: bool = False  # XON/XOFF


@dataclass(frozen=True, slots=True)
class SerialIdentity:
    """Which USB device a port must belong to; what is None or empty may be anything.

    `interface` tells the ports of one device apart: the number of the USB interface, from 0.
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

    def fits(self, found: SerialIdentity) -> bool:
        """Whether a port that was found, with all its particulars, is meant."""
        return (
            self.vendor in (None, found.vendor)
            and self.product in (None, found.product)
            and self.serial in ("", found.serial)
            and self.interface in (None, found.interface)
        )


class SerialOpener(Protocol):
    """Opens ports of one family."""

    def __call__(self, port: str | SerialIdentity, settings: SerialSettings) -> trio.abc.Stream:
        """Open and configure the port with that path or identity, exclusively; the caller closes it.

        HalError if that fails. An identity must fit exactly one port; the error names the ports that are there.
        """
