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


class SerialOpener(Protocol):
    """Opens ports of one family."""

    def __call__(self, path: str, settings: SerialSettings) -> trio.abc.Stream:
        """Open and configure the port at `path`, exclusively; the caller closes it. HalError if that fails."""
