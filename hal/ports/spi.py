"""SPI: full-duplex transfers with a device at a chip select.

A device can be opened only once at a time. Transfers on a bus are executed one after the other. If a transfer is
cancelled after it has begun, it is finished and its result dropped, as for I2C. Errors are HalError.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class SpiSettings:
    """Clock in Hz, mode (CPOL * 2 + CPHA) and bit order."""

    max_hz: int = 1_000_000
    mode: Literal[0, 1, 2, 3] = 0
    lsb_first: bool = False


class SpiDevice(Protocol):
    """An open device."""

    async def transfer(self, *parts: bytes) -> list[bytes]:
        """Send `parts` while chip select is held; return the received parts, which have the same lengths."""
