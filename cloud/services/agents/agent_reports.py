"""Reports of agents about their programs and updates."""

from __future__ import annotations

from cloud.domain.fleet.fleet import FleetPart
from cloud.domain.machines import machines, reported
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import ROLE_ANYWHERE, allow, machine, operator
from cloud.domain.releases import agent_report, reports, requests
from cloud.services.agents import agent_messages as m
from cloud.services.common.base import Service
from cloud.services.machines.whole_fleet import for_all_machines
from cloud.store.sql import Sql


class AgentReports(Service):
    """Reports of agents."""

    @allow(machine("part_id"))
    async def report_agent(self, part_id: str, report_json: bytes) -> m.ReportAgentResponse:
        """Store the report of a part's agent, and the outcomes in it. INVALID, also if it is too large.

        Return the key with which the cloud proves to the agent that it answers, see rpc.access.proof.
        """
        report = await self.offload(len(report_json), lambda: agent_report.decode(report_json))
        await self.write(lambda sql: reports.store(sql, part_id, report, self.now()))
        return m.ReportAgentResponse(self.cloud.links.proof_key(part_id))

    @allow(operator(ObjectKind.PART, "part_id"))
    async def get_agent_state(self, part_id: str) -> m.GetAgentStateResponse:
        """Return the newest report of a part, the outcomes of its updates, and requests that have not arrived."""

        def work(sql: Sql) -> m.GetAgentStateResponse:
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
            waiting = [
                m.AgentRequest(entry.id, entry.kind, entry.program, entry.requested, entry.expires)
                for entry in requests.pending(sql, part_id, self.now())
            ]
            latest = machines.part(sql, part_id).reported
            problems = [
                m.AgentProblem(problem.path, problem.message, problem.remedy)
                for problem in agent_report.version_problems(latest)
            ]
            if newest is None:
                return m.GetAgentStateResponse("", None, outcomes, waiting, problems)
            return m.GetAgentStateResponse(newest.report, newest.received, outcomes, waiting, problems)

        return await self.read(work)

    @allow(ROLE_ANYWHERE)
    async def list_agents(self) -> list[m.AgentSummary]:
        """Return what the agents of all parts at which the caller has a role have reported last, in short."""
        return await for_all_machines(
            self, lambda machine: [_summary(part) for part in machine.parts if reported.updates(part.reported)]
        )


def _summary(part: FleetPart) -> m.AgentSummary:
    short = reported.updates(part.reported)
    agent, server = short["agent"], short["server"]
    texts = (agent["version"], agent["target"], server["version"], server["target"])
    return m.AgentSummary(part.id, *texts, reported.states(part.reported))
