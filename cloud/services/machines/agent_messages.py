"""Messages of machine.cloud.v1.AgentService."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class AgentOutcome(Struct, frozen=True):
    """How an update ended. `ended` is by the clock of the machine, `received` by that of the cloud."""

    program: str
    version: str
    version_from: str
    result: str
    reason: str
    ended: datetime
    received: datetime


class GetAgentStateResponse(Struct, frozen=True):
    """The newest report of a part (JSON, empty before the first one), and outcomes, the newest first."""

    report_json: str
    received: datetime | None
    outcomes: list[AgentOutcome]
