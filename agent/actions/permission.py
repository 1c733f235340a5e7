"""Decides for the whole agent whether a program may be stopped now: gathers the facts for `decide`."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from functools import partial

from agent.control.report import ProblemReport, problems_of
from agent.layout import SERVER
from agent.leases.leases import Leases
from agent.maintenance.decide import CountedLease, MaintenanceFacts, MaintenanceVerdict, decide
from agent.maintenance.policy import policy
from schema import ConfigError
from schema.agent import AdvancedSettings
from support import ChangeSignal, RunBlocking
from support.clock import device_zone

Refusal = Callable[[], Awaitable[str | None]]
"""Asks machine-server; returns why it does not allow a restart, or None if it does or does not run."""


class AgentMaintenance:
    """Implements the port Permission of `agent.actions.program`. `run` calls functions in a worker thread."""

    def __init__(
        self, refusal: Refusal, leases: Leases, run: RunBlocking, wall: Callable[[], float] = time.time
    ) -> None:
        self._refusal, self._leases, self._run, self._wall = refusal, leases, run, wall
        self._settings = AdvancedSettings()
        self._zone_problem = ""
        self._changed = ChangeSignal()
        leases.on_change = self._notice

    def settings(self, settings: AdvancedSettings) -> None:
        """Take the windows and the longest deferral of the settings."""
        if settings != self._settings:
            self._settings = settings
            self._notice()

    @property
    def problems(self) -> tuple[ProblemReport, ...]:
        """What keeps windows and leases from working as they were meant."""
        problems = list(self._leases.problems)
        if self._zone_problem and self._settings.maintenance_windows:
            text = f"maintenance windows are in UTC: {self._zone_problem}"
            remedy = "set the time zone of the device: `timedatectl set-timezone Europe/Berlin`"
            problems.append(ConfigError("time zone", text, remedy=remedy))
        return problems_of(problems)

    async def may_restart(self, program: str, waiting_since: float, requested: bool) -> MaintenanceVerdict:
        """Return whether `program` may be stopped now; see `decide`. Asks machine-server, which takes some seconds.

        An update of the agent does not disturb machine-server, so its refusal does not count there. The time zone is
        read each time, so that a change of it counts at once.
        """
        refuses = await self._refusal() if program == SERVER and not requested else None
        zone, self._zone_problem = await self._run(partial(device_zone, os.environ.get("TZ")))
        leases = [
            CountedLease(held.name, held.until) for held in await self._leases.current()
        ]  # last: it takes no time
        facts = MaintenanceFacts(
            waiting_since=waiting_since, requested=requested, leases=leases, server_refuses=refuses
        )
        return decide(self._wall(), policy(self._settings, zone), facts)

    def change(self) -> Callable[[], Awaitable[None]]:
        """Return a function that waits until the decision may have changed since this call.

        Here settings and leases; a sensor reports no changes.
        """
        return self._changed.next.wait

    def _notice(self) -> None:
        self._changed.announce()
