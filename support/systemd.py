"""Messages to the service manager that started this program: readiness, status, stopping and the watchdog.

The protocol is that of sd_notify(3): datagrams of `NAME=value` lines to the socket in NOTIFY_SOCKET. Without this
variable, such as on a terminal, all functions do nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

import trio

_BEATS: Final = 2  # keep-alive messages in each watchdog period, as sd_watchdog_enabled(3) recommends


class ServiceManager:
    """The socket of the service manager; create it with `from_environment`. Several tasks may call `send`."""

    def __init__(self, address: str = "", watchdog: float = 0.0) -> None:
        self.address = address  # a path, or `@name` in the abstract namespace; empty without a manager
        self.watchdog = watchdog  # seconds without a keep-alive message after which the manager kills us; 0: never

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> ServiceManager:
        """Read NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID; invalid values are ignored."""
        address = environment.get("NOTIFY_SOCKET", "")
        if not address.startswith(("/", "@")):
            return cls()
        pid, period = environment.get("WATCHDOG_PID", ""), environment.get("WATCHDOG_USEC", "")
        watched = period.isdecimal() and pid in ("", str(os.getpid()))
        return cls(address, int(period) / 1e6 if watched else 0.0)

    async def send(self, **variables: str) -> None:
        """Send `NAME=value` lines, such as `READY="1"` or `STATUS="2 of 9 resources are ready"`.

        Values are cut at the first line break. OSError if the manager does not accept the message.
        """
        if not self.address:
            return
        lines = [f"{name}={(value.splitlines() or [''])[0]}" for name, value in variables.items()]
        name = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        with trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_DGRAM) as socket:
            await socket.connect(name)
            await socket.send("\n".join(lines).encode())

    async def keep_alive(self) -> None:
        """Send keep-alive messages until cancelled; return at once if the manager does not expect any.

        Run it on the event loop that is to be watched: a blocked loop sends nothing.
        """
        while self.watchdog > 0:
            await self.send(WATCHDOG="1")
            await trio.sleep(self.watchdog / _BEATS)
