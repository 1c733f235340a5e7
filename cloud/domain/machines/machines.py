"""Machines and their parts. A part is one computer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from cloud.domain.machines import listed
from cloud.domain.machines.online import SILENCE
from cloud.domain.organizations import tags
from cloud.domain.organizations.tenants import above, delete_grants, location, missing, roles_change
from cloud.store.sql import Conflict, Sql, Value, counted, inserted
from cloud.values.limits import MACHINES, PART_SECRETS, PARTS
from cloud.values.names import MAX_NAME, checked_name, new_id, new_secret, slug
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError

EMPTY: Final = "{}"  # configuration of a new part
MAIN: Final = "-main"  # suffix of a machine's name in the name of its first part


@dataclass(frozen=True, slots=True)
class MachineRecord:
    """A machine with one main part and perhaps others. `seen` is when any of them last called.

    `online` is True if any part is recorded as online; see `cloud.domain.machines.online.presence`.
    """

    id: str
    location_id: str
    name: str
    created: datetime
    seen: datetime | None
    online: bool
    gone: bool  # all parts that ever called have stopped orderly


@dataclass(frozen=True, slots=True)
class PartRecord:
    """A computer of a machine. `saved` and `revision` are time and number of its current configuration.

    `seen`, `online` and `gone` are arguments of `cloud.domain.machines.online.presence`.
    """

    id: str
    machine_id: str
    location_id: str
    organization_id: str
    machine: str
    name: str
    main: bool
    created: datetime
    revision: int
    saved: datetime
    seen: datetime | None
    online: bool
    restart: bool
    reported: Mapping[str, Any]
    gone: bool = False  # it has stopped orderly

    @property
    def host_name(self) -> str:
        """Name in the machine's own network, unless the machine has reported where it listens."""
        return f"{slug(self.name)}.{self.location_id}.local"


# ---- machines

_MACHINE = """
    SELECT id, location_id, name, created, (SELECT MAX(seen) FROM parts WHERE machine_id = machines.id) AS seen,
        (SELECT MAX(online) FROM parts JOIN trigger_presence ON part_id = parts.id WHERE machine_id = machines.id)
            AS online,
        (SELECT MIN(gone) FROM parts WHERE machine_id = machines.id AND seen IS NOT NULL) AS gone
    FROM machines
"""


def create_machine(sql: Sql, place: str, name: str, now: datetime) -> str:
    """Create a machine with its main part; return its id. EXISTS if the name is taken in the location."""
    location(sql, place)
    MACHINES.check_count(counted(sql, "machines", "location_id", place), "the location")
    subject = new_id()
    name = checked_name(name, "a machine")
    try:
        inserted(sql, "machines", {"id": subject, "location_id": place, "name": name, "created": stored(now)})
    except Conflict:
        raise _name_taken("machine", name) from None
    create_part(sql, subject, f"{name[: MAX_NAME - len(MAIN)]}{MAIN}", now)
    return subject


def machine(sql: Sql, subject: str) -> MachineRecord:
    """Return one machine; NOT_FOUND."""
    row = sql.row(f"{_MACHINE} WHERE id = ?", subject)
    if row is None:
        raise missing("machine", subject)
    return _machine(row)


def exists(sql: Sql, subject: str) -> bool:
    """Return whether there is a machine with this id."""
    return sql.row("SELECT id FROM machines WHERE id = ?", subject) is not None


def machines(sql: Sql, place: str) -> list[MachineRecord]:
    """Return all machines of a location, ordered by name."""
    return [_machine(row) for row in sql.rows(f"{_MACHINE} WHERE location_id = ? ORDER BY name", place)]


def _machine(row: Mapping[str, Any]) -> MachineRecord:
    seen = moment_of(row["seen"]) if row["seen"] is not None else None
    return MachineRecord(
        row["id"],
        row["location_id"],
        row["name"],
        moment_of(row["created"]),
        seen,
        bool(row["online"]),
        bool(row["gone"]),
    )


def update_machine(sql: Sql, subject: str, name: str, place: str) -> None:
    """Rename a machine, move it to another location, or both; empty arguments change nothing."""
    record = machine(sql, subject)
    if place and place != record.location_id:
        before, after = location(sql, record.location_id), location(sql, place)
        if before.organization_id != after.organization_id:
            raise missing("location", place)
        roles_change(sql, "location", [outer.id for nearest in (before, after) for outer in above(sql, nearest.id)])
    try:
        sql.run(
            "UPDATE machines SET name = ?, location_id = ? WHERE id = ?",
            checked_name(name, "a machine") if name else record.name,
            place or record.location_id,
            subject,
        )
    except Conflict:
        raise _name_taken("machine", name or record.name) from None
    listed.refresh(sql, subject)
    for row in sql.rows("SELECT id FROM parts WHERE machine_id = ?", subject):
        sql.notify("part", row["id"])


def delete_machine(sql: Sql, subject: str) -> None:
    """Delete a machine with its parts, their configurations and secrets. Log entries stay until they expire."""
    machine(sql, subject)
    for row in sql.rows("SELECT id FROM parts WHERE machine_id = ?", subject):
        _delete_part(sql, row["id"])
    delete_grants(sql, "robot", subject)
    sql.run("DELETE FROM favorites WHERE machine_id = ?", subject)
    listed.forget(sql, subject)
    tags.forget(sql, subject)
    sql.run("DELETE FROM machines WHERE id = ?", subject)


# ---- parts

_PART = """
    SELECT parts.id, machine_id, location_id, organization_id, machines.name AS machine, parts.name, main,
        parts.created, revision, saved, seen, online, gone, restart, reported
    FROM parts JOIN machines ON machines.id = parts.machine_id JOIN locations ON locations.id = machines.location_id
        LEFT JOIN trigger_presence ON part_id = parts.id
"""


def create_part(sql: Sql, owner: str, name: str, now: datetime) -> str:
    """Create a part with an empty configuration and a secret; return its id.

    The first part of a machine is its main part.
    """
    machine(sql, owner)
    PARTS.check_count(counted(sql, "parts", "machine_id", owner), "the machine")
    first = sql.row("SELECT id FROM parts WHERE machine_id = ?", owner) is None
    subject, name, moment = new_id(), checked_name(name, "a part"), stored(now)
    row: dict[str, Value] = {"id": subject, "machine_id": owner, "name": name, "main": int(first), "created": moment}
    try:
        inserted(sql, "parts", {**row, "revision": 1, "saved": moment})
    except Conflict:
        raise _name_taken("part", name) from None
    configuration: dict[str, Value] = {"part_id": subject, "revision": 1, "document": EMPTY, "saved": moment}
    inserted(sql, "configurations", {**configuration, "author_type": "program", "author": "machine-cloud"})
    create_secret(sql, subject, now)
    listed.refresh(sql, owner)
    _notify_parts(sql, owner)
    return subject


def part(sql: Sql, subject: str) -> PartRecord:
    """Return one part; NOT_FOUND."""
    row = sql.row(f"{_PART} WHERE parts.id = ?", subject)
    if row is None:
        raise missing("part", subject)
    return _part(row)


def parts(sql: Sql, owner: str) -> list[PartRecord]:
    """Return all parts of a machine, the main one first."""
    return [_part(row) for row in sql.rows(f"{_PART} WHERE machine_id = ? ORDER BY main DESC, parts.name", owner)]


def _part(row: Mapping[str, Any]) -> PartRecord:
    return PartRecord(
        id=row["id"],
        machine_id=row["machine_id"],
        location_id=row["location_id"],
        organization_id=row["organization_id"],
        machine=row["machine"],
        name=row["name"],
        main=bool(row["main"]),
        created=moment_of(row["created"]),
        revision=row["revision"],
        saved=moment_of(row["saved"]),
        seen=moment_of(row["seen"]) if row["seen"] is not None else None,
        online=bool(row["online"]),
        restart=bool(row["restart"]),
        reported=json.loads(row["reported"]),
        gone=bool(row["gone"]),
    )


def rename_part(sql: Sql, subject: str, name: str) -> None:
    """Rename a part; EXISTS if the name is taken in the machine."""
    try:
        sql.run("UPDATE parts SET name = ? WHERE id = ?", checked_name(name, "a part"), subject)
    except Conflict:
        raise _name_taken("part", name) from None
    _notify_parts(sql, part(sql, subject).machine_id)


def mark_main(sql: Sql, subject: str) -> None:
    """Make a part the main one of its machine."""
    record = part(sql, subject)
    sql.run(
        "UPDATE parts SET main = CASE WHEN id = ? THEN 1 ELSE 0 END WHERE machine_id = ?", subject, record.machine_id
    )
    listed.refresh(sql, record.machine_id)
    _notify_parts(sql, record.machine_id)
    for each in parts(sql, record.machine_id):
        sql.notify("secret", each.id)  # what the parts may call has changed


def _notify_parts(sql: Sql, owner: str) -> None:
    """Notify all parts of a machine: the main part has the others as remotes."""
    for row in sql.rows("SELECT id FROM parts WHERE machine_id = ?", owner):
        sql.notify("part", row["id"])


def mark_restart(sql: Sql, subject: str, *, requested: bool) -> None:
    """Request a restart of a part, or clear the request."""
    if not sql.run("UPDATE parts SET restart = ? WHERE id = ?", int(requested), subject):
        raise missing("part", subject)
    sql.notify("part", subject)


def note_gone(sql: Sql, subject: str, *, gone: bool) -> None:
    """Record that a part has stopped orderly, or is there again. Calls that are still on their way do not count."""
    if sql.run("UPDATE parts SET gone = ? WHERE id = ? AND gone <> ?", int(gone), subject, int(gone)):
        listed.refresh_part(sql, subject)
        sql.notify("presence", subject)


def note_seen(sql: Sql, subject: str, now: datetime, reported: Mapping[str, Any] | None = None) -> None:
    """Record that a machine called; `reported` is what it reports about itself, if anything."""
    sql.run("UPDATE parts SET seen = ? WHERE id = ?", stored(now), subject)
    if reported is not None:
        sql.run("UPDATE parts SET reported = ? WHERE id = ?", json.dumps(reported), subject)
    if reported is not None or not _is_online(sql, subject):
        listed.refresh_part(sql, subject, called=True)
    sql.notify("seen", subject)


def _is_online(sql: Sql, subject: str) -> bool:
    row = sql.row("SELECT online FROM trigger_presence WHERE part_id = ?", subject)
    return row is not None and bool(row["online"])


def note_all_seen(sql: Sql, calls: Iterable[tuple[str, datetime]]) -> None:
    """Record that these machines called, each at its time.

    A later time from another replica stays, unless it is so late that the clock there must have been wrong.
    """
    slack = SILENCE // timedelta(microseconds=1)
    moments = sorted((part, stored(moment)) for part, moment in calls)  # in order, so that replicas do not deadlock
    sql.many(
        "UPDATE parts SET seen = ? WHERE id = ? AND (seen IS NULL OR seen < ? OR seen > ?)",
        [(moment, part, moment, moment + slack) for part, moment in moments],
    )
    for part, _ in moments:
        sql.notify("seen", part)


def delete_part(sql: Sql, subject: str) -> None:
    """Delete a part; PRECONDITION for the main part, which is deleted only with its machine."""
    record = part(sql, subject)
    if record.main:
        raise MachineError(
            "this is the main part of its machine",
            kind=ErrorKind.PRECONDITION,
            remedy="make another part the main one, or delete the machine",
        )
    _delete_part(sql, subject)
    listed.refresh(sql, record.machine_id)
    tags.index(sql, record.machine_id)
    _notify_parts(sql, record.machine_id)


_OF_PART: Final = (
    "arrangements",
    "part_secrets",
    "part_certificates",
    "configurations",
    "live",
    "agent_reports",
    "agent_programs",
    "agent_outcomes",
    "agent_requests",
    "install_codes",
    "signals",
    "offers",
)
"""Tables whose rows are deleted with their part."""


def _delete_part(sql: Sql, subject: str) -> None:
    for table in _OF_PART:
        sql.run(f"DELETE FROM {table} WHERE part_id = ?", subject)
    sql.run("DELETE FROM fragment_uses WHERE kind = 'part' AND subject = ?", subject)
    sql.run("DELETE FROM written_texts WHERE kind = 'part' AND subject = ?", subject)
    if sql.run("UPDATE alerts SET due = 0 WHERE part_id = ?", subject):  # at its deadline, an alert ends with its part
        sql.notify("alerts", part(sql, subject).organization_id)
    sql.run("DELETE FROM parts WHERE id = ?", subject)
    sql.notify("secret", subject)
    sql.notify("part", subject)


# ---- secrets


def create_secret(sql: Sql, owner: str, now: datetime) -> None:
    """Add a secret with which the part may log in; EXHAUSTED if it has too many."""
    PART_SECRETS.check_count(counted(sql, "part_secrets", "part_id", owner), "the part")
    inserted(sql, "part_secrets", {"id": new_id(), "part_id": owner, "secret": new_secret(), "created": stored(now)})
    sql.notify("secret", owner)
    _notify_parts(sql, part(sql, owner).machine_id)


def secrets_of(sql: Sql, owner: str) -> list[tuple[str, str, datetime]]:
    """Return id, secret and creation time of each secret of a part, newest first."""
    rows = sql.rows("SELECT id, secret, created FROM part_secrets WHERE part_id = ? ORDER BY created DESC, id", owner)
    return [(row["id"], row["secret"], moment_of(row["created"])) for row in rows]


def delete_secret(sql: Sql, owner: str, subject: str) -> None:
    """Revoke a secret at once; PRECONDITION for the last one, without which the machine could not log in."""
    if len(secrets_of(sql, owner)) < 2:
        raise MachineError(
            "this is the part's only secret", kind=ErrorKind.PRECONDITION, remedy="create another one first"
        )
    if not sql.run("DELETE FROM part_secrets WHERE id = ? AND part_id = ?", subject, owner):
        raise missing("secret", subject)
    sql.notify("secret", owner)
    _notify_parts(sql, part(sql, owner).machine_id)


def _name_taken(kind: str, name: str) -> MachineError:
    return MachineError(
        f"there is already a {kind} called {name!r} here", kind=ErrorKind.EXISTS, remedy="choose another name"
    )
