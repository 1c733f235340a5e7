"""Reports of agents about their programs and updates. The calls are not published."""

from __future__ import annotations

from cloud.domain.permissions import call_rules
from cloud.domain.releases import agent_report, reports
from cloud.services.common.base import Service, guarded
from cloud.services.machines import agent_messages as m
from cloud.store.sql import Sql


class AgentReports(Service):
    """Reports of agents."""

    async def report_agent(self, id: str, report_json: bytes) -> None:  # noqa: A002 - as in the published calls
        """Store the report of a part's agent, and the outcomes in it. INVALID, also if it is too large."""
        report = await self.offload(len(report_json), lambda: agent_report.decode(report_json))
        await self.write(lambda sql: reports.store(sql, id, report, self.now()))

    async def get_agent_state(self, part_id: str) -> m.AgentState:
        """Return the newest report of a part and the outcomes of its updates."""

        def work(sql: Sql) -> m.AgentState:
            newest = reports.newest(sql, part_id)
            outcomes = [
                m.AgentOutcome(
                    entry.program,
                    entry.version,
                    entry.version_from,
                    entry.result,
                    entry.reason,
                    entry.ended,
                    entry.received,
                )
                for entry in reports.outcomes(sql, part_id)
            ]
            if newest is None:
                return m.AgentState("", None, outcomes)
            return m.AgentState(newest.report, newest.received, outcomes)

        return await self.read(work)


@guarded(call_rules.AGENT_REPORTS)
class AgentReportService(AgentReports):
    """A call about the reports of agents."""
