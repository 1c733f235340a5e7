"""Authorities in the database: for each scope the signing one, and older ones that clients still trust."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from cloud.domain.certificates.issue import MOST_CROSSED, CertificatePair, crossed, new_root
from cloud.store.events import EVERY
from cloud.store.sql import Sql, inserted
from cloud.values.times import moment_of, stored
from rpc.network import MACHINE_AUTHORITY
from schema import ErrorKind, MachineError

PORT: Final = ""
"""Scope of the cloud's own port. Other scopes are ids of organizations, for their machines.

Changes of this scope concern all clients: as the subject of an event it is EVERY.
"""

OVERLAP: Final = timedelta(days=90)
"""How long a rotated authority stays trusted, so that the new one can be distributed to all clients."""

TOPIC: Final = "authority"


@dataclass(frozen=True, slots=True)
class Authority:
    """A root authority. `cross` is its key signed by its predecessor, for clients that know only that one."""

    number: int
    scope: str
    pair: CertificatePair
    cross: str
    created: datetime
    ends: datetime | None  # end of trust; None for the signing authority


def current(sql: Sql, scope: str, now: datetime) -> Authority:
    """Return the authority that signs for `scope`; create it on first use."""
    return signing_authority(sql, scope) or _created(sql, scope, None, now)


def signing_authority(sql: Sql, scope: str) -> Authority | None:
    """Return the authority that signs for `scope`, or None."""
    row = sql.row(f"{_ALL} WHERE scope = ? AND ends IS NULL ORDER BY number DESC", scope)
    return None if row is None else _authority(row)


def trusted(sql: Sql, scope: str, now: datetime) -> list[Authority]:
    """Return the authorities that clients should trust for `scope`: the signing one, then those that it replaced."""
    rows = sql.rows(f"{_ALL} WHERE scope = ? AND (ends IS NULL OR ends > ?) ORDER BY number DESC", scope, stored(now))
    return [_authority(row) for row in rows]


def chain(sql: Sql, scope: str, now: datetime) -> str:
    """Return what a server sends after its own certificate: cross-signed certificates for older roots, then the root.

    Verifiers do not need the root; it is included so that machines learn it.
    """
    authorities = trusted(sql, scope, now)
    return "".join(authority.cross for authority in authorities[:-1]) + authorities[0].pair.certificate


def rotate(sql: Sql, scope: str, now: datetime, overlap: timedelta = OVERLAP) -> Authority:
    """Create and return a new signing authority. Its predecessors stay trusted for `overlap`; 0 ends trust at once.

    PRECONDITION if too many authorities are still trusted.
    """
    predecessors = trusted(sql, scope, now) if overlap else []
    if len(predecessors) > MOST_CROSSED:
        raise MachineError(
            f"{len(predecessors)} authorities are still trusted, which is the maximum",
            kind=ErrorKind.PRECONDITION,
            remedy=f"wait until {predecessors[-1].ends:%Y-%m-%d}, or use `rotate --now` to trust only the new one",
        )
    ends = stored(now + overlap)
    sql.run("UPDATE authorities SET ends = ? WHERE scope = ? AND (ends IS NULL OR ends > ?)", ends, scope, ends)
    return _created(sql, scope, predecessors[0] if predecessors else None, now)


def scopes(sql: Sql) -> list[str]:
    """Return all scopes that can have an authority: the cloud's port, then the organizations by name."""
    return [PORT, *(row["id"] for row in sql.rows("SELECT id FROM organizations ORDER BY name, id"))]


def expire(sql: Sql, now: datetime) -> int:
    """Delete authorities that are no longer trusted; return their number."""
    deleted = sql.run("DELETE FROM authorities WHERE ends <= ?", stored(now))
    if deleted:
        sql.notify(TOPIC, EVERY)
    return deleted


_ALL: Final = "SELECT number, scope, certificate, private_key, cross_signed, created, ends FROM authorities"


def _created(sql: Sql, scope: str, predecessor: Authority | None, now: datetime) -> Authority:
    pair = new_root("machine-cloud" if scope == PORT else MACHINE_AUTHORITY, now)
    cross = crossed(predecessor.pair, pair) if predecessor is not None else ""
    row = {"scope": scope, "certificate": pair.certificate, "private_key": pair.key, "cross_signed": cross}
    inserted(sql, "authorities", {**row, "created": stored(now)})
    sql.notify(TOPIC, scope)
    authority = signing_authority(sql, scope)
    assert authority is not None
    return authority


def _authority(row: Mapping[str, Any]) -> Authority:
    return Authority(
        number=row["number"],
        scope=row["scope"],
        pair=CertificatePair(row["certificate"], row["private_key"]),
        cross=row["cross_signed"],
        created=moment_of(row["created"]),
        ends=moment_of(row["ends"]) if row["ends"] is not None else None,
    )
