"""machine.cloud.v1.AgentService: what machine-agent reports."""

from __future__ import annotations

from cloud.services.agents.agent_reports import AgentReports
from cloud.services.agents.agent_requests import AgentRequests
from cloud.services.common.base import guarded


@guarded
class AgentService(AgentReports, AgentRequests):
    """machine.cloud.v1.AgentService: calls of agents, and what they report, for commands and pages."""
