"""viam.app.agent.v1.AgentDeviceService: calls of a machine's agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import IntEnum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from cloud.domain.configurations import configurations
from cloud.domain.machines import machines
from cloud.domain.machines.machines import PartRecord
from cloud.domain.permissions import call_rules
from cloud.domain.registry import files, items
from cloud.domain.registry.versions import LATEST, WITH_PRERELEASE
from cloud.domain.releases import decision, repository, rollouts
from cloud.domain.releases.files import ReleaseFile
from cloud.services.common.base import Service, guarded
from cloud.store.sql import Sql
from schema.errors import MachineError
from uplink.releases import STABLE

CHECK_INTERVAL: Final = timedelta(seconds=10)  # keeps within the specified 15 seconds; agents allow 5 and more
LINK: Final = timedelta(hours=24)  # the link must stay valid for repeated downloads over a slow line
CHANNELS: Final[Mapping[str, str]] = {"": LATEST, "stable": LATEST, "dev": WITH_PRERELEASE}
CUSTOM: Final = "customURL"  # protocol constant: version of a program that is given as a URL
AGENT: Final = ("agent",)
SERVER: Final = ("machine-server", "viam-server")  # keys of version_control, ours first


class Format(IntEnum):
    """Format of a downloaded file: PackageFormat."""

    UNSPECIFIED = 0
    RAW = 1
    XZ = 2
    EXECUTABLE = 3
    XZ_EXECUTABLE = 4


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


class UpdateInfo(Struct, frozen=True):
    """A program to install."""

    filename: str
    url: str
    version: str
    sha256: bytes = b""
    format: Format = Format.EXECUTABLE


class AgentConfig(Struct, frozen=True):
    """The `agent` section of a configuration, as a published message. Without update info, nothing is updated."""

    check_interval: timedelta
    advanced_settings: Mapping[str, Any]
    network_configuration: Mapping[str, Any]
    additional_networks: Mapping[str, Any]
    system_configuration: Mapping[str, Any]
    agent_update_info: UpdateInfo | None = None
    viam_server_update_info: UpdateInfo | None = None


@guarded(call_rules.AGENT)
class AgentDeviceService(Service):
    """A call of an agent. Published methods that are missing here are UNIMPLEMENTED."""

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
        `machine-server` in the machine's organization, or a URL. Without one, nothing is updated. If the organization
        has a repository of signed releases, versions come from it instead of packages, as its rollouts allow.
        """
        report = _reported(host_info, version_info)

        def work(sql: Sql) -> tuple[Mapping[str, Any], UpdateInfo | None, UpdateInfo | None]:
            before = machines.part(sql, id).reported
            reported = {**before, **report}
            machines.note_seen(sql, id, self.now(), None if reported == before else reported)
            section = _section(configurations.resolved(sql, id), "agent")
            control = _section(section, "version_control")
            part = machines.part(sql, id)
            select = self._release if repository.exists(sql, part.organization_id) else self._package
            agent, server = (self._update(sql, control, names, part, select) for names in (AGENT, SERVER))
            return section, agent, server

        section, agent, server = await self.write(work)
        return AgentConfig(
            check_interval=CHECK_INTERVAL,
            advanced_settings=_section(section, "advanced_settings"),
            network_configuration=_section(section, "network_configuration"),
            additional_networks=_section(section, "additional_networks"),
            system_configuration=_section(section, "system_configuration"),
            agent_update_info=agent,
            viam_server_update_info=server,
        )

    def _update(
        self, sql: Sql, control: Mapping[str, Any], names: tuple[str, ...], part: PartRecord, select: Select
    ) -> UpdateInfo | None:
        version = next((str(control[name]) for name in names if control.get(name)), "")
        program = "machine-agent" if names is AGENT else "machine-server"
        return UpdateInfo(program, version, CUSTOM) if "://" in version else select(sql, program, version, part)

    def _package(self, sql: Sql, program: str, version: str, part: PartRecord) -> UpdateInfo | None:
        platform, tags = str(part.reported.get("platform", "")), part.reported.get("platform_tags") or ()
        for item in items.of_organization(sql, part.organization_id):  # no other one decides what its machines run
            if item.name == program and item.type == "archive":
                try:
                    item_files = files.files(sql, item.id)
                    file = files.best(item_files, item, CHANNELS.get(version, version), platform, tags)
                except MachineError:
                    continue  # no file for this computer, or no such version
                return self._info(program, file.version, platform, file.path, file.digest)
        return None

    def _release(self, sql: Sql, program: str, version: str, part: PartRecord) -> UpdateInfo | None:
        owner = part.organization_id
        names = _RUNNING[program]
        running = next((str(part.reported[name]) for name in names if part.reported.get(name)), "")
        target = decision.choose(
            version or STABLE,
            repository.targets(sql, owner, program),
            rollouts.of_program(sql, owner, program),
            rollouts.facts(sql, part, running),
        )
        if target is None:
            return None
        path = ReleaseFile.path_of(target.file)
        return self._info(program, target.custom.version, target.custom.platform, path, target.digest)

    def _info(self, program: str, version: str, platform: str, path: str, digest: str) -> UpdateInfo:
        name = f"{program}-v{version}-{platform.rpartition('/')[2] or 'any'}"
        return UpdateInfo(name, self.cloud.links.url(path, self.now() + LINK), version, bytes.fromhex(digest))


Select = Callable[[Sql, str, str, PartRecord], UpdateInfo | None]
"""Function that returns what a part is to install of a program, by the version that its configuration names."""

_RUNNING: Final = {
    "machine-agent": ("agent_running", "agent_installed"),
    "machine-server": ("viam_server_running", "viam_server_installed"),
}
"""Fields of the report with the version of a program."""


def _reported(host: HostInfo | None, versions: VersionInfo | None) -> dict[str, Any]:
    """Return the reported values to store with those of machine-server."""
    report: dict[str, Any] = {}
    if host is not None:
        report |= {"platform": host.platform, "distro": host.distro, "platform_tags": list(host.tags)}
    if versions is not None:
        report |= asdict(versions)
    return {key: value for key, value in report.items() if value}


def _section(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the object at `key`; an empty one if it is missing or not an object."""
    section = holder.get(key)
    return section if isinstance(section, Mapping) else {}
