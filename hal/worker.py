"""The worker thread of a bus: a device that hangs in the kernel delays only users of the same bus."""

from __future__ import annotations

from hal.errors import Fault, HalError
from support import worker


class BusWorker(worker.Worker):
    """The thread of a bus, which executes transactions in order. `name` is the name of the bus in errors."""

    def hanging(self) -> HalError:
        """See Worker.hanging; with a remedy for hardware."""
        return HalError(
            f"{self.name}: a transaction has been hanging in the kernel for {worker.CLOSING_LIMIT:g} s",
            Fault.TIMEOUT,
            remedy="unplug the adapter, or power the bus off and on: its driver does not time out",
        )
