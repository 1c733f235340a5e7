"""The authorities in the database: one that signs for each scope, and older ones while clients learn the new one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from cloud.certificates.issue import MOST_CROSSED, Pair, crossed, new_root
from cloud.store.events import EVERY
from cloud.store.sql import Sql, inserted
from cloud.times import moment_of, stored
from schema.errors import ErrorKind, MachineError

PORT: Final = ""
"""The scope of the cloud's own port; others are ids of organizations, for their machines.

News of it concern everybody: as a subject it is EVERY.
"""

OVERLAP: Final = timedelta(days=90)
"""For how long a rotated authority is trusted beside the new one: the time to bring the new one to all clients."""

TOPIC: Final = "authority"


@dataclass(frozen=True, slots=True)
class Authority:
    """A root. `cross` is its key as signed by the one before it, for clients that know only that."""

    number: int
    scope: str
    pair: Pair
    cross: str
    created: datetime
    ends: datetime | None  # when it is not trusted any more; None for the one that signs


def current(sql: Sql, scope: str, now: datetime) -> Authority:
    """The authority that signs for `scope`, made when it is needed first."""
    return known(sql, scope) or _created(sql, scope, None, now)


def known(sql: Sql, scope: str) -> Authority | None:
    """The authority that signs for `scope`, if there is one."""
    row = sql.row(f"{_ALL} WHERE scope = ? AND ends IS NULL ORDER BY number DESC", scope)
    return None if row is None else _authority(row)


def trusted(sql: Sql, scope: str, now: datetime) -> list[Authority]:
    """Those that clients should trust for `scope`: the one that signs, then those that it has replaced."""
    rows = sql.rows(f"{_ALL} WHERE scope = ? AND (ends IS NULL OR ends > ?) ORDER BY number DESC", scope, stored(now))
    return [_authority(row) for row in rows]


def chain(sql: Sql, scope: str, now: datetime) -> str:
    """What a server sends behind its own certificate: for clients that know only older roots, and the root itself.

    Verifiers need no root from there; machines learn it so.
    """
    found = trusted(sql, scope, now)
    return "".join(one.cross for one in found[:-1]) + found[0].pair.certificate


def rotate(sql: Sql, scope: str, now: datetime, overlap: timedelta = OVERLAP) -> Authority:
    """A new authority that signs from now on. Those before it stay trusted for `overlap`, without one not at all.

    PRECONDITION if too many are trusted beside it already.
    """
    before = trusted(sql, scope, now) if overlap else []
    if len(before) > MOST_CROSSED:
        raise MachineError(
            f"{len(before)} authorities are trusted at the same time",
            kind=ErrorKind.PRECONDITION,
            remedy=f"wait until {before[-1].ends:%Y-%m-%d}, or rotate --now, which leaves none but the new one",
        )
    ends = stored(now + overlap)
    sql.run("UPDATE authorities SET ends = ? WHERE scope = ? AND (ends IS NULL OR ends > ?)", ends, scope, ends)
    return _created(sql, scope, before[0] if before else None, now)


def scopes(sql: Sql) -> list[str]:
    """Every scope that could have an authority: the cloud's port, then the organizations by name."""
    return [PORT, *(row["id"] for row in sql.rows("SELECT id FROM organizations ORDER BY name, id"))]


def expire(sql: Sql, now: datetime) -> int:
    """Delete those that nobody is to trust any more; how many there were."""
    gone = sql.run("DELETE FROM authorities WHERE ends <= ?", stored(now))
    if gone:
        sql.notify(TOPIC, EVERY)
    return gone


_ALL: Final = "SELECT number, scope, certificate, private_key, cross_signed, created, ends FROM authorities"


def _created(sql: Sql, scope: str, before: Authority | None, now: datetime) -> Authority:
    pair = new_root("machine-cloud" if scope == PORT else "machine-cloud machines", now)
    cross = crossed(before.pair, pair) if before is not None else ""
    row = {"scope": scope, "certificate": pair.certificate, "private_key": pair.key, "cross_signed": cross}
    inserted(sql, "authorities", {**row, "created": stored(now)})
    sql.notify(TOPIC, scope)
    made = known(sql, scope)
    assert made is not None
    return made


def _authority(row: Mapping[str, Any]) -> Authority:
    return Authority(
        number=row["number"],
        scope=row["scope"],
        pair=Pair(row["certificate"], row["private_key"]),
        cross=row["cross_signed"],
        created=moment_of(row["created"]),
        ends=moment_of(row["ends"]) if row["ends"] is not None else None,
    )
