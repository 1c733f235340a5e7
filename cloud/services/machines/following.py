"""The machine's side of the push channel: data sent to it, and the stored part of its reports."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from cloud.domain.alerts.observing import problems_of
from cloud.domain.fleet import watching
from cloud.domain.machines.machines import PartRecord, mark_restart, note_gone, note_seen, part
from cloud.domain.machines.reported import COMPUTER
from cloud.domain.machines.signalling import REPORTED as REPORTED_WEBRTC
from cloud.domain.permissions.access import ObjectKind, Role, place_of, require
from cloud.domain.triggering.queue import CheckDue, enqueue
from cloud.services.common.base import Cloud
from cloud.services.common.standing import patiently
from cloud.services.machines.facts import facts, roots
from cloud.services.machines.machines import cloud_address_of
from cloud.store.sql import Sql
from cloud.values.author import Author

REPORTED: Final = frozenset(
    {
        *("host", "os", "platform", "version", "address", "secure", "state", "revision", "rejected"),
        *("ready", "unhealthy", "waiting", "problems"),
        *COMPUTER,
        REPORTED_WEBRTC,
    }
)
"""Keys of a report that are stored."""


class Following:
    """A machine that follows its configuration. Methods wait while the database is unavailable."""

    def __init__(self, cloud: Cloud, author: Author, subject: str) -> None:
        self._cloud = cloud
        self._author = author
        self._subject = subject

    def allowed(self, sql: Sql) -> None:
        """Raise an error if the caller is refused; for `until_refused`."""
        require(sql, self._author, Role.MACHINE, ObjectKind.PART, self._subject)

    async def begin(self, computer: Mapping[str, Any]) -> None:
        """Check the caller and store its `computer` before sending anything, because the selected packages depend on
        it.

        Raises UNAVAILABLE without waiting for the database; the machine then tries again.
        """

        def before(sql: Sql) -> PartRecord:
            self.allowed(sql)
            return part(sql, self._subject)

        def begin(sql: Sql) -> None:
            note_gone(sql, self._subject, gone=False)
            self._note(sql, computer, self._cloud.clock())

        record = await self._cloud.store.read(before)
        if record.gone or any(record.reported.get(key) != value for key, value in computer.items()):
            await self._cloud.store.write(begin)

    async def end(self) -> None:
        """Record that the machine stops orderly: it is offline from now on."""
        store = self._cloud.store
        await patiently(lambda: store.write(lambda sql: note_gone(sql, self._subject, gone=True)))

    async def organization(self) -> str:
        """Return the organization of the part."""
        store = self._cloud.store
        return (await patiently(lambda: store.read(lambda sql: part(sql, self._subject)))).organization_id

    async def machine_data(self) -> tuple[dict[str, Any], frozenset[str]]:
        """Return the data for the machine as JSON, and the ids of the places whose roles count for it.

        Raises an error if the caller is refused: the change that is to be sent may be that of its secret.
        """
        own_port = self._cloud.tls is not None and self._cloud.tls.own
        domain = self._cloud.hosts.domain

        def work(sql: Sql) -> tuple[dict[str, Any], frozenset[str]]:
            self.allowed(sql)
            authorities = roots(sql, self._subject, self._cloud.clock(), port=own_port)
            around = frozenset(place for _, place in place_of(sql, ObjectKind.PART, self._subject).within)
            data = facts(sql, self._subject, partial(cloud_address_of, self._cloud))
            if domain:
                data["cloud"]["machine_domain"] = domain
            return {**data, "authorities": authorities}, around

        return await patiently(lambda: self._cloud.store.read(work))

    async def restarted(self) -> None:
        """Clear the restart request, which is about to be sent to the machine."""
        store = self._cloud.store
        await patiently(lambda: store.write(lambda sql: mark_restart(sql, self._subject, requested=False)))

    async def watched(self) -> float:
        """Return for how many more seconds a page shows the part live; 0 if none does."""
        store, clock = self._cloud.store, self._cloud.clock
        return await patiently(lambda: store.read(lambda sql: watching.watched(sql, self._subject, clock())))

    async def keep(self, report: Any, live: Any) -> None:
        """Store a report and a snapshot of a machine; each is ignored unless it is an object."""

        def work(sql: Sql) -> None:
            now = self._cloud.clock()
            if isinstance(report, dict):
                self._note(sql, _stored_fields(report), now)
            if isinstance(live, dict):
                watching.store_snapshot(sql, self._subject, live, now)

        if isinstance(report, dict) or isinstance(live, dict):
            await patiently(lambda: self._cloud.store.write(work))

    def _note(self, sql: Sql, report: Mapping[str, Any], now: datetime) -> None:
        before = part(sql, self._subject).reported
        after = {**before, **report}
        note_seen(sql, self._subject, now, after)
        if problems_of(before) != problems_of(after):
            enqueue(sql, self._subject, CheckDue(), now)


def _stored_fields(report: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in report.items() if key in REPORTED and isinstance(value, str | int | float)}
