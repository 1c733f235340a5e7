"""The machine's own side of the wire: its configuration, its logs, whether it should restart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, Final

from cloud import configurations, logs, machines
from cloud.access import Of, Role
from cloud.logs import LogRecord
from cloud.registry.resolution import with_sources
from cloud.services import messages as m
from cloud.services.base import Rule, guarded
from cloud.services.certificates import PartCertificates
from cloud.services.machines import address_of
from cloud.store.sql import Sql
from cloud.tenants import location
from cloud.wire import robot_config
from schema.errors import ErrorKind, MachineError
from schema.machine import decode

RESTART_INTERVAL: Final = timedelta(seconds=5)  # the published default


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """What a machine says of itself."""

    host: str = ""
    os: str = ""
    ips: list[str] = field(default_factory=list)
    version: str = ""
    git_revision: str = ""
    platform: str | None = None
    platform_tags: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RestartWanted:
    """The answer to NeedsRestart."""

    id: str
    must_restart: bool
    restart_check_interval: timedelta


PART: Final = Rule(Role.MACHINE, Of.PART, "id")


@guarded({"config": PART, "certificate": PART, "log": PART, "needs_restart": PART})
class RobotService(PartCertificates):
    """viam.app.v1.RobotService: called by machines, with a part's secret or a key that reaches it."""

    async def config(self, id: str, agent_info: AgentInfo | None = None) -> Mapping[str, Any]:  # noqa: A002 - field of the wire
        """The configuration as the protocol can say it. Entries with mistakes are left out: the pages show them."""
        reported = asdict(agent_info) if agent_info is not None else None

        def work(sql: Sql) -> tuple[machines.PartRecord, str, Mapping[str, Any], str]:
            before = machines.part(sql, id).reported
            known = {**before, **(reported or {})}
            machines.note_seen(sql, id, self.now(), None if known == before else known)
            part = machines.part(sql, id)
            owner = location(sql, part.location_id).organization_id
            version, merged = configurations.resolution(sql, id)
            platform, tags = str(known.get("platform") or ""), known.get("platform_tags") or ()
            return part, version, with_sources(sql, merged.document, owner, platform, tags), owner

        part, version, document, owner = await self.write(work)
        decoded = decode(json.dumps(document).encode())
        if decoded.document is None:
            raise MachineError(
                f"the configuration cannot be used: {decoded.problems[0]}",
                kind=ErrorKind.INVALID,
                remedy="correct it in the cloud",
            )
        cloud = {
            "id": part.id,
            "fqdn": address_of(part, document),
            "local_fqdn": part.host_name,
            "signaling_insecure": not self.cloud.links.base.startswith("https://"),  # then it expects no certificate
            "location_id": part.location_id,
            "primary_org_id": owner,
            "machine_id": part.machine_id,
        }
        return robot_config(decoded.document, version, cloud)

    async def log(self, id: str, logs: Sequence[m.LogEntry]) -> None:  # noqa: A002 - field of the wire
        """Keep log entries; they are on the disk when this returns."""
        now = self.now()
        records = [
            LogRecord(
                time=one.time or now,
                level=one.level,
                logger=one.logger_name,
                message=one.message,
                host=one.host,
                caller=one.caller,
                stack=one.stack,
                fields=tuple(one.fields),
            )
            for one in logs
        ]
        await self.write(lambda sql: _keep(sql, id, records, now))

    async def needs_restart(self, id: str) -> RestartWanted:  # noqa: A002 - field of the wire
        """Whether somebody asked for a restart; asked for once, told once."""

        def work(sql: Sql) -> RestartWanted:
            part = machines.part(sql, id)
            machines.note_seen(sql, id, self.now())
            if part.restart:
                machines.mark_restart(sql, id, wanted=False)
            return RestartWanted(id, part.restart, RESTART_INTERVAL)

        return await self.write(work)


def _keep(sql: Sql, part: str, records: Sequence[LogRecord], now: Any) -> None:
    logs.append(sql, part, records, now)
    machines.note_seen(sql, part, now)
