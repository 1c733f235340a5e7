"""The worker thread of one bus: a device that hangs in the kernel delays only those who wait for the same bus."""

from __future__ import annotations

from hal.errors import Fault, HalError
from support import worker


class BusWorker(worker.Worker):
    """The thread of one bus, whose transactions keep their order. `name` is the bus in errors."""

    def hanging(self) -> HalError:
        """As of every worker; the remedy is for hardware."""
        return HalError(
            f"{self.name}: a transaction has been hanging in the kernel for {worker.CLOSING_LIMIT:g} s",
            Fault.TIMEOUT,
            remedy="unplug the adapter, or power the bus off and on: its driver does not give up by itself",
        )
