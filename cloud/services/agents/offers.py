"""The version of each program that a machine is to run: from its configuration, and releases or packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, Final

from msgspec import Struct

from cloud.domain.machines.machines import PartRecord
from cloud.domain.permissions.links import Links
from cloud.domain.registry import files, items
from cloud.domain.registry.versions import LATEST, WITH_PRERELEASE, newest_first
from cloud.domain.releases import agent_report, decision, repository, rollouts
from cloud.domain.releases.agent_report import KEPT, ReportedProblem
from cloud.domain.releases.files import ReleaseFile
from cloud.store.sql import Sql
from schema import MachineError
from uplink.releases import AGENT, SERVER, normal_platform

LINK: Final = timedelta(hours=24)  # the link must stay valid for repeated downloads over a slow line
CHANNELS: Final[Mapping[str, str]] = {"stable": LATEST, "dev": WITH_PRERELEASE}
CUSTOM: Final = "customURL"  # protocol constant: version of a program that is given as a URL
KEYS: Final[Mapping[str, tuple[str, ...]]] = {AGENT: ("agent",), SERVER: ("machine-server", "viam-server")}
"""Keys of version_control by program, ours first."""
RUNNING: Final[Mapping[str, tuple[str, ...]]] = {
    AGENT: ("agent_running", "agent_installed"),
    SERVER: ("viam_server_running", "viam_server_installed"),
}
"""Fields of the report with the version of a program."""


class Format(IntEnum):
    """Format of a downloaded file: PackageFormat."""

    UNSPECIFIED = 0
    RAW = 1
    XZ = 2
    EXECUTABLE = 3
    XZ_EXECUTABLE = 4


class UpdateInfo(Struct, frozen=True):
    """A program to install."""

    filename: str
    url: str
    version: str
    sha256: bytes = b""
    format: Format = Format.EXECUTABLE


@dataclass(frozen=True, slots=True)
class AgentOffers:
    """The offers to a part. `section` is the key `agent` of its resolved configuration."""

    sql: Sql
    links: Links
    now: datetime
    part: PartRecord
    section: Mapping[str, Any]
    decided: dict[str, tuple[UpdateInfo | None, ReportedProblem | None]] = field(default_factory=dict, init=False)

    def of(self, program: str) -> UpdateInfo | None:
        """Return the version of a program that the part is to run; None if there is none for it.

        If the configuration names none that can be used, the version that runs, so that a mistake changes nothing.
        """
        return self._decided(program)[0]

    @property
    def problems(self) -> list[ReportedProblem]:
        """What is wrong with the versions in the configuration: not valid, or not published for the machine."""
        return [problem for program in KEYS if (problem := self.problem(program)) is not None]

    def problem(self, program: str) -> ReportedProblem | None:
        """Return what is wrong with the version of a program in the configuration, None if nothing is."""
        return self._decided(program)[1]

    def _decided(self, program: str) -> tuple[UpdateInfo | None, ReportedProblem | None]:
        if program not in self.decided:
            self.decided[program] = self._decide(program)
        return self.decided[program]

    def _decide(self, program: str) -> tuple[UpdateInfo | None, ReportedProblem | None]:
        control = section_of(self.section, "version_control")
        version, path, problem = agent_report.wanted_version(control, KEYS[program])
        running = self._running(program)
        if problem is None:
            if "://" in version:
                return UpdateInfo(program, version, CUSTOM), None
            offer = self._published(program, version)
            if offer is not None or version in CHANNELS or version == running:
                return offer, None
            problem = self._not_published(program, version, path)
        return (self._published(program, running) if running else None), problem

    def _running(self, program: str) -> str:
        reported = self.part.reported
        return next((str(reported[name]) for name in RUNNING[program] if reported.get(name)), "")

    def _published(self, program: str, version: str) -> UpdateInfo | None:
        signed = repository.exists(self.sql, self.part.organization_id)
        return self._release(program, version) if signed else self._package(program, version)

    def _not_published(self, program: str, version: str, path: str) -> ReportedProblem:
        owner, platform = self.part.organization_id, normal_platform(str(self.part.reported.get("platform", "")))
        if repository.exists(self.sql, owner):
            targets = repository.targets(self.sql, owner, program)
            usable = {target.custom.version for target in targets if target.custom.platform == platform}
        else:
            packages = (item for item in items.of_organization(self.sql, owner) if item.type == "archive")
            usable = {
                file.version
                for item in packages
                if item.name == program
                for file in files.files(self.sql, item.id)
                if normal_platform(file.platform) in (platform, "any")
            }
        newest = ", ".join(newest_first(usable)[:5])
        return ReportedProblem(
            path,
            f"version {version[:60]} of {program} is not published for {platform or 'this machine'}; {KEPT}",
            f"name a published version ({newest}), stable or dev" if newest else "publish it, or name another version",
        )

    def _package(self, program: str, version: str) -> UpdateInfo | None:
        reported = self.part.reported
        platform, tags = str(reported.get("platform", "")), reported.get("platform_tags") or ()
        for item in items.of_organization(self.sql, self.part.organization_id):  # no other one decides
            if item.name == program and item.type == "archive":
                try:
                    item_files = files.files(self.sql, item.id)
                    file = files.best(item_files, item, CHANNELS.get(version, version), platform, tags)
                except MachineError:
                    continue  # no file for this computer, or no such version
                return self._info(program, file.version, platform, file.path, file.digest)
        return None

    def _release(self, program: str, version: str) -> UpdateInfo | None:
        owner = self.part.organization_id
        target = decision.choose(
            version,
            repository.targets(self.sql, owner, program),
            rollouts.of_program(self.sql, owner, program),
            rollouts.facts(self.sql, self.part, self._running(program)),
        )
        if target is None:
            return None
        path = ReleaseFile.path_of(target.file)
        return self._info(program, target.custom.version, target.custom.platform, path, target.digest)

    def _info(self, program: str, version: str, platform: str, path: str, digest: str) -> UpdateInfo:
        name = f"{program}-v{version}-{platform.rpartition('/')[2] or 'any'}"
        return UpdateInfo(name, self.links.url(path, self.now + LINK), version, bytes.fromhex(digest))


def section_of(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the object at `key`; an empty one if it is missing or not an object."""
    section = holder.get(key)
    return section if isinstance(section, Mapping) else {}
