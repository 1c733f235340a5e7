"""The rows by which lists of machines are filtered and ordered, derived from machines, their parts and reports.

A change of something that a row is derived from calls `refresh` in its transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cloud.domain.machines import reported as report
from cloud.domain.organizations import tags
from cloud.store.sql import Row, Sql, Value, inserted

AWAITING: Final = "awaiting"
ONLINE: Final = "online"
OFFLINE: Final = "offline"
DEGRADED: Final = "degraded"
TOPIC: Final = "fleet"
"""Topic of events about changed rows; the subject is the machine."""
DUE: Final = "rollout due"
"""Topic of events about machines that rollouts must look at; the subject is empty."""

_UP: Final = (ONLINE, DEGRADED)


def refresh(sql: Sql, machine: str, called: str = "") -> None:
    """Bring the row of a machine up to date, and notify pages if it changed; `called` is a part that calls just now."""
    parts = sql.rows(
        """
        SELECT machines.name AS name, location_id, organization_id, parts.id AS id, seen, gone, reported, online
        FROM machines JOIN locations ON locations.id = location_id JOIN parts ON parts.machine_id = machines.id
            LEFT JOIN trigger_presence ON part_id = parts.id
        WHERE machines.id = ? ORDER BY main DESC, parts.name
        """,
        machine,
    )
    if not parts:
        return
    look(sql, machine)
    before = sql.row(
        "SELECT organization_id, location_id, name, state, calm, server, agent, updates, updating, stale "
        "FROM fleet_rows WHERE machine_id = ?",
        machine,
    )
    row = _derived(parts, before is not None and before["state"] in _UP, called)
    if before is None:
        inserted(sql, "fleet_rows", {"machine_id": machine, **row})
    elif dict(before) != row:
        columns = ", ".join(f"{name} = ?" for name in row)
        sql.run(f"UPDATE fleet_rows SET {columns} WHERE machine_id = ?", *row.values(), machine)
    else:
        return
    sql.notify(TOPIC, machine)


def look(sql: Sql, machine: str) -> None:
    """Have open rollouts look at a machine: something was reported that they may wait for."""
    if sql.run("UPDATE staged_machines SET due = 0 WHERE machine_id = ? AND watched = 1", machine):
        sql.notify(DUE, "")


def refresh_part(sql: Sql, part: str, *, called: bool = False) -> None:
    """Bring the row of a part's machine up to date; see `refresh`."""
    row = sql.row("SELECT machine_id FROM parts WHERE id = ?", part)
    if row is not None:
        refresh(sql, row["machine_id"], part if called else "")


def refresh_stale(sql: Sql, limit: int) -> int:
    """Derive up to `limit` rows, with tags, that an update of the database has left empty; return their number."""
    rows = sql.rows("SELECT machine_id FROM fleet_rows WHERE stale = 1 ORDER BY machine_id LIMIT ?", limit)
    for row in rows:
        refresh(sql, row["machine_id"])
        tags.index(sql, row["machine_id"])
    return len(rows)


def forget(sql: Sql, machine: str) -> None:
    """Delete the row of a machine that is deleted."""
    look(sql, machine)
    sql.run("DELETE FROM fleet_rows WHERE machine_id = ?", machine)
    sql.notify(TOPIC, machine)


def _derived(parts: Sequence[Row], was_up: bool, called: str) -> dict[str, Value]:
    reports: list[Mapping[str, Any]] = [json.loads(part["reported"]) for part in parts]
    up = [_is_up(part, was_up, called) for part in parts]
    troubled = any(
        online and (report.problem_count(reported) or report.rejected(reported))
        for online, reported in zip(up, reports, strict=True)
    )
    first = parts[0]
    state = AWAITING if first["seen"] is None else OFFLINE if not up[0] else DEGRADED if troubled else ONLINE
    updates = [state for state in report.STATES if any(state in report.states(reported) for reported in reports)]
    return {
        "organization_id": first["organization_id"],
        "location_id": first["location_id"],
        "name": first["name"].lower(),
        "state": state,
        "calm": -sum(report.problem_count(each) + bool(report.rejected(each)) for each in reports),
        "server": _joined(report.server_version(each) for each in reports),
        "agent": _joined(report.version(each, "agent") for each in reports),
        "updates": f" {' '.join(updates)} " if updates else "",
        "updating": int(report.UPDATING in updates or report.WAITING in updates),
        "stale": 0,
    }


def _is_up(part: Row, was_up: bool, called: str) -> bool:
    """Return whether a part is online. Before that is recorded for the first time, its calls decide."""
    if part["seen"] is None or part["gone"]:
        return False
    if part["id"] == called:
        return True
    return was_up if part["online"] is None else bool(part["online"])


def _joined(versions: Any) -> str:
    return " ".join(sorted({version.replace(" ", "_") for version in versions if version}))
