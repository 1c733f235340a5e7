"""Log of what was decided about the network, for people who look for the reason of a change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import structlog

from netmgr.model.plan import Effect
from netmgr.provisioning.states import Event, ProvisioningOutcome

_log = structlog.get_logger("netmgr")


class DecisionLog:
    """Logs each decision at level debug, unless it is that of the round before. No line contains a secret."""

    def __init__(self) -> None:
        self._last: dict[str, Any] = {}

    def note(
        self, outcome: ProvisioningOutcome, event: Event | None, effects: Iterable[Effect], *, configured: bool
    ) -> None:
        """Take a decision, the event that it was made from (None: what is observed), and what is changed for it."""
        decided = {
            "mode": outcome.state.mode.value,
            "cause": type(event).__name__ if event is not None else "observation",
            "configured": configured,
            "reason": "; ".join(outcome.reasons) or "the settings, and what is observed",
            "changes": [f"{type(effect).__name__} {effect.interface}".strip() for effect in effects],
        }
        if decided != self._last:
            self._last = decided
            _log.debug("decided about the network", **decided)
