"""Decides for the whole agent whether a program may be stopped now: gathers the facts for `decide`."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import trio

from agent.layout import SERVER
from agent.maintenance.decide import Facts, Policy, Verdict, decide

Refusal = Callable[[], Awaitable[str | None]]
"""Asks machine-server; returns why it does not allow a restart, or None if it does or does not run."""


class Maintenance:
    """Implements the port Permission of `agent.actions.program`."""

    def __init__(self, refusal: Refusal, policy: Callable[[], Policy] = Policy) -> None:
        self._refusal, self._policy = refusal, policy

    async def may_restart(self, program: str, waiting_since: float, requested: bool) -> Verdict:
        """Return whether `program` may be stopped now; see `decide`. Asks machine-server, which takes some seconds.

        An update of the agent does not disturb machine-server, so its refusal does not count there.
        """
        refuses = await self._refusal() if program == SERVER and not requested else None
        facts = Facts(waiting_since=waiting_since, requested=requested, server_refuses=refuses)
        return decide(time.time(), self._policy(), facts)

    async def change(self) -> None:
        """Wait until the decision may have changed for another reason than time; a sensor reports no changes."""
        await trio.sleep_forever()
