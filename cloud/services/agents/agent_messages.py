"""Messages of machine.cloud.v1.AgentService."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class ReportAgentResponse(Struct, frozen=True):
    """`connectivity_key` is the key of rpc.access.proof for the part: a secret of the part."""

    connectivity_key: str

    def __repr__(self) -> str:
        return "ReportAgentResponse(...)"


class AgentOutcome(Struct, frozen=True):
    """How an update ended. `ended` is by the clock of the machine, `received` by that of the cloud."""

    program: str
    version: str
    version_from: str
    result: str
    reason: str
    ended: datetime
    received: datetime


class AgentSummary(Struct, frozen=True):
    """What lists of machines show of the agent of a part. `states` are updating, waiting, rolled_back and problems."""

    part_id: str
    agent_version: str
    agent_target: str
    server_version: str
    server_target: str
    states: list[str]


class AgentProblem(Struct, frozen=True):
    """A problem of `version_control`, which the cloud reads, not the agent."""

    path: str
    message: str
    remedy: str


class AgentRequest(Struct, frozen=True):
    """A request to an agent that has not arrived. `kind` is check or update, `program` that of an update."""

    id: str
    kind: str
    program: str
    requested: datetime
    expires: datetime


class GetAgentStateResponse(Struct, frozen=True):
    """The newest report of a part (JSON, empty before the first one), outcomes, the newest first, and requests."""

    report_json: str
    received: datetime | None
    outcomes: list[AgentOutcome]
    requests: list[AgentRequest]
    problems: list[AgentProblem]


class InstallCode(Struct, frozen=True):
    """A code that installs a part. `key` is its secret."""

    id: str
    key: str
    ends: datetime
