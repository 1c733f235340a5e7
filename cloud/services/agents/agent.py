"""viam.app.agent.v1.AgentDeviceService: calls of a machine's agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from msgspec import Struct, to_builtins
from msgspec.structs import asdict

from cloud.domain.configurations import configurations
from cloud.domain.machines import machines
from cloud.domain.machines.reported import VERSION_PROBLEMS
from cloud.domain.permissions.rules import allow, machine
from cloud.domain.releases.agent_report import ReportedProblem
from cloud.services.agents.offers import AgentOffers, UpdateInfo, section_of
from cloud.services.common.base import Service, guarded
from cloud.store.sql import Sql
from uplink.releases import AGENT, PROBLEMS_KEY, SERVER

CHECK_INTERVAL: Final = timedelta(seconds=10)  # keeps within the specified 15 seconds; agents allow 5 and more


class HostInfo(Struct, frozen=True):
    """Computer of an agent, as it reports it."""

    platform: str = ""
    distro: str = ""
    tags: list[str] = []


class VersionInfo(Struct, frozen=True):
    """Installed and running versions."""

    agent_running: str = ""
    agent_installed: str = ""
    viam_server_running: str = ""
    viam_server_installed: str = ""


class AgentConfig(Struct, frozen=True):
    """The `agent` section of a configuration, as a published message. Without update info, nothing is updated."""

    check_interval: timedelta
    advanced_settings: Mapping[str, Any]
    network_configuration: Mapping[str, Any]
    additional_networks: Mapping[str, Any]
    system_configuration: Mapping[str, Any]
    agent_update_info: UpdateInfo | None = None
    viam_server_update_info: UpdateInfo | None = None


@guarded
class AgentDeviceService(Service):
    """A call of an agent. Published methods that are missing here are UNIMPLEMENTED."""

    @allow(machine("id"))
    async def device_agent_config(
        self,
        id: str,  # noqa: A002 - field of the wire
        host_info: HostInfo | None = None,
        subsystem_versions: Mapping[str, str] | None = None,
        version_info: VersionInfo | None = None,
        agent_uptime: timedelta | None = None,
        viam_server_uptime: timedelta | None = None,
    ) -> AgentConfig:
        """Return the agent configuration of a part, and store the agent's report.

        `subsystem_versions` is the predecessor of `version_info` and is ignored.

        A version of the agent or of machine-server is either a package of type ARCHIVE called `machine-agent` or
        `machine-server` in the machine's organization, or a URL. Without one, nothing is updated. A version that is not
        valid or not published changes nothing: the version that runs is named, and the problem is in
        the key PROBLEMS_KEY of `advanced_settings`. If the organization
        has a repository of signed releases, versions come from it instead of packages, as its rollouts allow.
        """
        report = _reported(host_info, version_info)

        def work(sql: Sql) -> tuple[Mapping[str, Any], UpdateInfo | None, UpdateInfo | None, list[ReportedProblem]]:
            part = machines.part(sql, id)
            section = section_of(configurations.resolved(sql, id), "agent")
            reported = {key: value for key, value in part.reported.items() if key != VERSION_PROBLEMS} | report
            offers = AgentOffers(sql, self.cloud.links, self.now(), replace(part, reported=reported), section)
            problems = offers.problems
            if problems:
                reported[VERSION_PROBLEMS] = to_builtins(problems)
            machines.note_gone(sql, id, gone=False)
            machines.note_seen(sql, id, self.now(), None if reported == part.reported else reported)
            return section, offers.of(AGENT), offers.of(SERVER), problems

        section, agent, server, problems = await self.write(work)
        return AgentConfig(
            check_interval=CHECK_INTERVAL,
            advanced_settings=_with_problems(section_of(section, "advanced_settings"), problems),
            network_configuration=section_of(section, "network_configuration"),
            additional_networks=section_of(section, "additional_networks"),
            system_configuration=section_of(section, "system_configuration"),
            agent_update_info=agent,
            viam_server_update_info=server,
        )


def _with_problems(advanced: Mapping[str, Any], problems: list[ReportedProblem]) -> Mapping[str, Any]:
    """Return the section with the problems of versions: the published message has no field for them."""
    return {**advanced, PROBLEMS_KEY: to_builtins(problems)} if problems else advanced


def _reported(host: HostInfo | None, versions: VersionInfo | None) -> dict[str, Any]:
    """Return the reported values to store with those of machine-server."""
    report: dict[str, Any] = {}
    if host is not None:
        report |= {"platform": host.platform, "distro": host.distro, "platform_tags": list(host.tags)}
    if versions is not None:
        report |= asdict(versions)
    return {key: value for key, value in report.items() if value}
