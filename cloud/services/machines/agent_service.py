"""machine.cloud.v1.AgentService: what machine-agent reports."""

from __future__ import annotations

from cloud.domain.permissions import call_rules
from cloud.services.common.base import guarded
from cloud.services.machines.agent_reports import AgentReports
from cloud.services.machines.agent_requests import AgentRequests


@guarded(call_rules.AGENTS)
class AgentService(AgentReports, AgentRequests):
    """machine.cloud.v1.AgentService: calls of agents, and what they report, for commands and pages."""
