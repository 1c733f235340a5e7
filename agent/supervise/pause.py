"""The pause before systemd restarts machine-server after a crash: a drop-in of its unit that the agent writes.

systemd computes increasing pauses only since version 254, and never goes back to the first one while the unit is not
stopped. So the agent does it, by the same rule as for a child process. systemd reads the drop-in with a reload, which
also sets the end of a pause that has begun, measured from the exit. If the reload comes too late, the former pause
counts. Without an agent, systemd keeps the pause that was set last; a reboot deletes it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
import trio

from agent.supervise.health import FIRST_DELAY, LONGEST_DELAY, crashes_in_a_row, restart_delay
from schema import MachineError
from support.files import replace_file

_SETTING: Final = "RestartSec="
_log = structlog.get_logger("agent.supervise")


class RestartPause:
    """The drop-in at `path`. `run` calls blocking functions in a worker; `control` is systemctl.

    A failure is logged: systemd then keeps the former pause until the next change.
    """

    def __init__(
        self, path: Path, run: Callable[[Callable[[], Any]], Awaitable[Any]], control: Callable[..., Awaitable[str]]
    ) -> None:
        self._path, self._run, self._control = path, run, control
        self._lock = trio.Lock()
        self._reload = False  # systemd has not read the drop-in as it is
        self.crashes = 0
        """Crashes in a row."""

    async def load(self) -> None:
        """Continue with the pause that an earlier agent has set since the boot."""
        self.crashes = await self._run(partial(_crashes, self._path))

    async def crashed(self, ran: float) -> None:
        """Set the pause after a crash of a process that ran for `ran` seconds."""
        self.crashes = crashes_in_a_row(self.crashes, ran)
        await self._apply()

    async def reset(self) -> None:
        """Forget the crashes."""
        if self.crashes:
            self.crashes = 0
            await self._apply()

    async def _apply(self) -> None:
        async with self._lock:
            pause = restart_delay(self.crashes)
            try:
                self._reload = await self._run(partial(_store, self._path, pause)) or self._reload
                if self._reload:
                    await self._control("daemon-reload")
                    self._reload = False
            except (OSError, MachineError) as error:
                _log.warning("the pause before a restart of machine-server cannot be set", error=str(error))


def drop_in(pause: float) -> str:
    """Return the text of the drop-in for a pause in seconds; empty if none is needed."""
    return f"# Written by machine-agent.\n[Service]\n{_SETTING}{pause:g}\n" if pause > FIRST_DELAY else ""


def _store(path: Path, pause: float) -> bool:
    """Make the drop-in say that; return whether it was changed."""
    text = drop_in(pause)
    before = path.read_text(errors="replace") if path.exists() else ""
    if before == text:
        return False
    if text:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode())
    else:
        path.unlink()
    return True


def _crashes(path: Path) -> int:
    """Return the number of crashes in a row after which the pause is that of the drop-in; 0 without one."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return 0
    pauses = [line.removeprefix(_SETTING) for line in lines if line.startswith(_SETTING)]
    crashes = 0
    if pauses and pauses[-1].isdecimal():
        longest = min(float(pauses[-1]), LONGEST_DELAY)
        while restart_delay(crashes) < longest:
            crashes += 1
    return crashes
