"""The worker thread of a bus: a device that hangs in the kernel delays only users of the same bus."""

from __future__ import annotations

from hal.errors import Fault, HalError
from support import CLOSING_LIMIT, Worker


class BusWorker(Worker):
    """The thread of a bus, which executes transactions in order. `name` is the name of the bus in errors."""

    def hanging(self) -> HalError:
        """Return the error for a transaction that the kernel does not end, with what to do at the device."""
        return HalError(
            f"{self.name}: a transaction has been hanging in the kernel for {CLOSING_LIMIT:g} s",
            Fault.TIMEOUT,
            remedy="unplug the adapter, or power the bus off and on: its driver does not time out",
        )
