"""Audit log: one entry for each call that changes something, written in the transaction of the change.

Entries are kept as long as their organization exists. They contain no secrets: names and plain values are kept,
documents are left out (configurations have their own history), and values with secret names are masked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final

from cloud.domain.machines.machines import machine, part
from cloud.domain.organizations.keys import key
from cloud.domain.organizations.tenants import location, organization
from cloud.domain.permissions.access import GRANT_KINDS, ObjectKind, place_of
from cloud.store.sql import Sql, inserted, literal
from cloud.values.author import Author
from cloud.values.records import fields_of
from cloud.values.times import moment_of, stored
from schema import MASK, MachineError, is_secret, origin_of, shortened

PAGE: Final = 100
MAX_TEXT: Final = 200  # characters in a value
MAX_ITEMS: Final = 20  # items in a list
LEFT_OUT: Final = "…"  # replaces documents, bytes and truncated text

VERBS: Final = frozenset(
    {
        "acknowledge", "add", "cancel", "change", "configure", "create", "delete", "deprecate", "install", "mark",
        "merge", "move", "new", "remove", "rename", "replay", "resend", "revert", "rotate", "send", "set", "share",
        "silence", "start", "stop", "submit", "undeprecate", "unshare", "update", "upload",
    }
)  # fmt: skip
"""First words of the methods that change something."""

_ROLES: Final = frozenset(
    {
        "authorization",
        "authorizations",
        "old_authorization",
        "new_authorization",
        "authorization_id",
        "authorization_type",
    }
)
"""Arguments that contain roles: their names look like those of secrets."""

_ID: Final = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[a-z0-9]{10}"
)  # see cloud.values.names; keys are longer


_VALUES: Final = frozenset({"value", "value_json"})
"""Fields of messages with values of configurations."""

TOGETHER: Final = frozenset({"set_annotations", "set_arrangement"})
"""Actions of which a person does hundreds in a row. One entry stands for all of an author at one object within GAP."""

GAP: Final = timedelta(minutes=10)  # between two actions that share an entry
RECENT: Final = 20  # entries of the organization among which the previous one is looked for


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One change. `name` is the name of the author's key, or empty if the key was deleted since."""

    number: int
    happened: datetime
    author: Author
    name: str
    action: str
    subject: str
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Filter for entries; all conditions must match. `before` is the last number on the previous page."""

    author: str = ""
    action: str = ""
    text: str = ""
    start: datetime | None = None
    end: datetime | None = None
    before: int | None = None
    limit: int = PAGE


def is_change(method: str) -> bool:
    """Return whether a service method changes something, judged by its first word."""
    return method.partition("_")[0] in VERBS


def note(
    sql: Sql, owner: str, author: Author, action: str, subject: str, detail: Mapping[str, Any], now: datetime
) -> None:
    """Write one entry for the organization `owner`, or count the action in the entry of others; see TOGETHER."""
    if action in TOGETHER and _counted(sql, owner, author, action, subject, now):
        return
    inserted(
        sql,
        "audit",
        {
            "organization_id": owner,
            "happened": stored(now),
            "author_type": author.type,
            "author": author.name,
            "action": action,
            "subject": subject,
            "detail": json.dumps(detail, ensure_ascii=False),
        },
    )


def _counted(sql: Sql, owner: str, author: Author, action: str, subject: str, now: datetime) -> bool:
    """Count an action in the entry of the previous ones; return False if there is none."""
    rows = sql.rows(
        "SELECT number, happened, author, action, subject, detail FROM audit WHERE organization_id = ? "
        "ORDER BY number DESC LIMIT ?",
        owner,
        RECENT,
    )
    for row in rows:
        if (row["author"], row["action"], row["subject"]) != (author.name, action, subject):
            continue
        detail = json.loads(row["detail"])
        last = datetime.fromisoformat(detail["until"]) if "until" in detail else moment_of(row["happened"])
        if not timedelta(0) <= now - last <= GAP:
            return False
        detail |= {"times": detail.get("times", 1) + 1, "until": now.isoformat(timespec="seconds")}
        sql.run("UPDATE audit SET detail = ? WHERE number = ?", json.dumps(detail, ensure_ascii=False), row["number"])
        return True
    return False


def entries(sql: Sql, owner: str, audit_query: AuditQuery) -> list[AuditRecord]:
    """Return entries of an organization, newest first."""
    conditions, values = ["audit.organization_id = ?"], [owner]
    filter_values: list[str | int] = []
    if audit_query.author:
        conditions.append("author = ?")
        filter_values.append(audit_query.author)
    if audit_query.action:
        conditions.append("action = ?")
        filter_values.append(audit_query.action)
    if audit_query.text:
        conditions.append("(lower(subject) LIKE lower(?) ESCAPE '!' OR lower(detail) LIKE lower(?) ESCAPE '!')")
        filter_values += [f"%{literal(audit_query.text)}%"] * 2
    if audit_query.start is not None:
        conditions.append("happened >= ?")
        filter_values.append(stored(audit_query.start))
    if audit_query.end is not None:
        conditions.append("happened < ?")
        filter_values.append(stored(audit_query.end))
    if audit_query.before is not None:
        conditions.append("number < ?")
        filter_values.append(audit_query.before)
    rows = sql.rows(
        f"""
        SELECT number, happened, author_type, author, keys.name AS name, action, subject, detail
        FROM audit LEFT JOIN keys ON keys.id = audit.author
        WHERE {" AND ".join(conditions)} ORDER BY number DESC LIMIT ?
        """,
        *values,
        *filter_values,
        max(1, min(audit_query.limit, 10 * PAGE)),
    )
    return [
        AuditRecord(
            row["number"],
            moment_of(row["happened"]),
            Author(row["author_type"], row["author"]),
            row["name"] or "",
            row["action"],
            row["subject"],
            json.loads(row["detail"]),
        )
        for row in rows
    ]


def actions(sql: Sql, owner: str) -> list[str]:
    """Return the distinct actions in an organization's entries."""
    next_action = "SELECT MIN(action) FROM audit WHERE organization_id = ?"
    rows = sql.rows(  # from each action to the next in the index: there are few, of any number of entries
        f"""
        WITH RECURSIVE actions(action) AS (
            SELECT * FROM ({next_action}) AS first
            UNION ALL
            SELECT ({next_action} AND audit.action > actions.action) FROM actions WHERE actions.action IS NOT NULL
        )
        SELECT action FROM actions WHERE action IS NOT NULL
        """,
        owner,
        owner,
    )
    return sorted(row["action"] for row in rows)


def organization_of(sql: Sql, author: Author) -> str:
    """Return the organization of a key; empty for other authors."""
    try:
        return key(sql, author.name).organization_id
    except MachineError:
        return ""


def label(sql: Sql, of: ObjectKind, subject: str) -> str:
    """Return the name of an object before it is changed; empty if unknown."""
    try:
        if of is ObjectKind.ORGANIZATION:
            return organization(sql, subject).name
        if of is ObjectKind.LOCATION:
            return location(sql, subject).name
        if of is ObjectKind.ROBOT:
            return machine(sql, subject).name
        if of is ObjectKind.PART:
            return part(sql, subject).name
        if of is ObjectKind.KEY:
            return key(sql, subject).name
    except MachineError:
        pass  # the call itself reports the missing object
    return ""


def roles_in(name: str, value: Any) -> list[Mapping[str, Any]]:
    """Return the roles in an argument of an entry: each has `authorization_id`, `resource_type` and `resource_id`."""
    items = value if isinstance(value, list) else [value]
    needed = {"authorization_id", "resource_type", "resource_id"}
    return [item for item in items if name in _ROLES and isinstance(item, dict) and needed <= item.keys()]


def places(sql: Sql, owner: str, records: Iterable[AuditRecord]) -> dict[tuple[str, str], str]:
    """Return the names of the objects to which the roles in entries apply: those that exist in the organization."""
    names: dict[tuple[str, str], str] = {}
    roles = (role for record in records for item in record.detail.items() for role in roles_in(*item))
    for at in {(role["resource_type"], role["resource_id"]) for role in roles}:
        if (kind := GRANT_KINDS.get(at[0])) is None:
            continue
        try:
            names[at] = label(sql, kind, at[1]) if place_of(sql, kind, at[1]).organization == owner else ""
        except MachineError:
            names[at] = ""  # it was deleted
    return {at: name for at, name in names.items() if name}


# ---- arguments of a call


def loggable(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call for an entry: secrets are masked, documents replaced, empty values left out."""
    entry = {name: _shown(name, value) for name, value in arguments.items()}
    return {name: value for name, value in entry.items() if value not in (None, "", [], {})}


def created_id(result: Any) -> str:
    """Return the id of what a transaction created, if its result is an id or begins with one; never a key."""
    first = result[0] if isinstance(result, tuple) and result else result
    subject = getattr(first, "id", first)
    return subject if isinstance(subject, str) and _ID.fullmatch(subject) else ""


def _shown(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if hasattr(value, "__aiter__"):
        return None  # uploaded content
    if is_secret(name) and name not in _ROLES and value != "":
        return MASK
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, int | float):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        return _text(name, value)
    if (record := fields_of(value)) is not None:
        # Values of settings may be secret whatever their names are; the path is enough.
        return loggable({field: item for field, item in record.items() if field not in _VALUES})
    if isinstance(value, Mapping):
        return LEFT_OUT if value else None
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        items = [_shown(name, item) for item in value[:MAX_ITEMS]]
        return [*items, LEFT_OUT] if len(value) > MAX_ITEMS else items
    return LEFT_OUT


def _text(name: str, value: str) -> str:
    if name.endswith("_json") or value[:1] in ("{", "["):
        return LEFT_OUT
    if name == "value" and "://" in value:  # the path of a webhook is often a secret
        return origin_of(value)
    return shortened(value, MAX_TEXT)
