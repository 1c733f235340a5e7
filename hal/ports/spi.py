"""SPI: full-duplex transfers with a device behind one chip select.

A device belongs to whoever opened it. Transfers on one bus are carried out one after the other. Cancellation as for
I2C: a transfer that has begun is finished and its result dropped. Errors are HalError.
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
    """One device."""

    async def transfer(self, *parts: bytes) -> list[bytes]:
        """Send `parts` while chip select is held; returns what came back, of the same lengths."""
