"""Calls of machines: configuration, logs, restart requests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from cloud.domain.configurations import configurations
from cloud.domain.machines import logs, machines
from cloud.domain.machines.logs import LogRecord
from cloud.domain.machines.subparts import sub_parts, with_remotes
from cloud.domain.permissions.rules import allow, machine
from cloud.domain.registry.resolution import with_sources
from cloud.services.common import messages as m
from cloud.services.common.base import guarded
from cloud.services.machines.certificates import PartCertificates
from cloud.services.machines.machines import address_of, cloud_address_of, host_of
from cloud.services.machines.wire import robot_config
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError, whole_numbers
from schema.document import decode_document

RESTART_INTERVAL: Final = timedelta(seconds=5)  # the published default


class AgentInfo(Struct, frozen=True):
    """Data that a machine reports about itself."""

    host: str = ""
    os: str = ""
    ips: list[str] = []
    version: str = ""
    git_revision: str = ""
    platform: str | None = None
    platform_tags: list[str] = []


class RestartCheck(Struct, frozen=True):
    """Response of NeedsRestart."""

    id: str
    must_restart: bool
    restart_check_interval: timedelta


@guarded
class RobotService(PartCertificates):
    """viam.app.v1.RobotService: calls of machines, with a secret of the part or of its location."""

    @allow(machine("id", inside=True))
    async def config(self, id: str, agent_info: AgentInfo | None = None) -> Mapping[str, Any]:  # noqa: A002 - field of the wire
        """Return the configuration as a published message. Invalid entries are left out; the pages show them."""
        report = asdict(agent_info) if agent_info is not None else {}

        def work(sql: Sql) -> tuple[machines.PartRecord, str, Mapping[str, Any], bool]:
            part = machines.part(sql, id)
            reported = {**part.reported, **report}
            version, merged = configurations.resolution(sql, part)
            platform, tags = str(reported.get("platform") or ""), reported.get("platform_tags") or ()
            remotes = [(each.name, cloud_address_of(self.cloud, each)) for each in sub_parts(sql, part)]
            document = with_sources(sql, with_remotes(merged.document, remotes), part.organization_id, platform, tags)
            return replace(part, reported=reported), version, document, reported != part.reported

        part, version, document, new = await self.read_checked(work)
        await self._called(id, report if new else {})
        decoded = decode_document(json.dumps(document).encode())
        if decoded.document is None:
            raise MachineError(
                f"the configuration cannot be used: {decoded.problems[0]}",
                kind=ErrorKind.INVALID,
                remedy="correct it in the cloud",
            )
        host = host_of(self.cloud, part)
        cloud = {
            "id": part.id,
            "fqdn": host or address_of(part, document),
            "local_fqdn": address_of(part, document) if host else part.host_name,
            "signaling_insecure": not self.cloud.links.base.startswith("https://"),  # machines expect no certificate
            "location_id": part.location_id,
            "primary_org_id": part.organization_id,
            "machine_id": part.machine_id,
        }
        return robot_config(decoded.document, version, cloud)

    @allow(machine("id", inside=True))
    async def log(self, id: str, logs: Sequence[m.LogEntry]) -> None:  # noqa: A002 - field of the wire
        """Store log entries; they are on disk when this returns."""
        now = self.now()
        records = [
            LogRecord(
                time=entry.time or now,
                level=entry.level,
                logger=entry.logger_name,
                message=entry.message,
                host=entry.host,
                caller=whole_numbers(entry.caller),
                stack=entry.stack,
                fields=tuple(whole_numbers(entry.fields)),
            )
            for entry in logs
        ]
        new = self.cloud.seen.called(id, now)
        await self.write_checked(lambda sql: _keep(sql, id, records, now, new=new))

    @allow(machine("id", inside=True))
    async def needs_restart(self, id: str) -> RestartCheck:  # noqa: A002 - field of the wire
        """Return whether a restart was requested, once per request."""

        requested = (await self.read_checked(lambda sql: machines.part(sql, id))).restart
        if requested:
            requested = await self.write(lambda sql: _restarting(sql, id))
        await self._called(id, {})
        return RestartCheck(id, requested, RESTART_INTERVAL)

    async def _called(self, part: str, report: Mapping[str, Any]) -> None:
        """Record a call of a machine, and new data about itself."""
        now = self.now()

        def work(sql: Sql) -> None:
            machines.note_seen(sql, part, now, {**machines.part(sql, part).reported, **report} if report else None)

        if self.cloud.seen.called(part, now) or report:
            await self.write(work)


def _keep(sql: Sql, part: str, records: Sequence[LogRecord], now: datetime, *, new: bool) -> None:
    logs.append(sql, part, records, now)
    if new:
        machines.note_seen(sql, part, now)


def _restarting(sql: Sql, part: str) -> bool:
    """Return whether a restart is still requested, and clear the request."""
    requested = machines.part(sql, part).restart
    if requested:
        machines.mark_restart(sql, part, requested=False)
    return requested
