"""Offers of WebRTC connections to machines, and the signals that the two ends of an offer exchange.

They are in the database, because the caller and the machine may be connected to different replicas. An offer lives for
`TIME`, in which a connection is either established or has failed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from grpclib.const import Status

from cloud.store.sql import Row, Sql
from cloud.values.author import Author
from cloud.values.limits import CALLER_OFFERS, OFFERS, SDP, SIGNAL, SIGNALS
from cloud.values.names import new_id
from cloud.values.times import moment_of, stored
from schema import ErrorKind, MachineError

TIME: Final = timedelta(seconds=20)
"""Time from an offer to its end: the longest time for which an official client waits."""

REPORTED: Final = "webrtc"
"""Key in the report of a machine: whether it answers offers."""

OFFERED: Final = "offer"
"""Topic of events about new offers; the subject is the part."""

SIGNALLED: Final = "signal"
"""Topic of events about signals; the subject is the offer."""


class End(StrEnum):
    """End of an offer, as the receiver of a signal."""

    CALLER = "caller"
    MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class Offer:
    """An offer of a caller to a part."""

    id: str
    part: str
    caller: Author
    sdp: str  # as the caller sent it
    trickle: bool  # whether the ends send their candidates one by one
    expires: datetime


@dataclass(frozen=True, slots=True)
class PeerSignal:
    """A signal, with its number among those for the same receiver."""

    number: int
    content: Mapping[str, Any]


def create(sql: Sql, part: str, caller: Author, sdp: str, now: datetime, *, trickle: bool) -> Offer:
    """Store an offer to a part and notify the calls that answer for it.

    INVALID if it is too large; EXHAUSTED if the caller, or all callers together, have too many open offers to the part.
    """
    SDP.check(len(sdp), "the session description")
    sql.in_turn(f"offers {part}")
    rows = sql.rows(
        "SELECT caller_type, caller FROM offers WHERE part_id = ? AND ended = 0 AND expires > ?", part, stored(now)
    )
    own = sum((row["caller_type"], row["caller"]) == (caller.type, caller.name) for row in rows)
    CALLER_OFFERS.check_count(own, "this key")
    OFFERS.check_count(len(rows), "the machine")
    offer = Offer(new_id(), part, caller, sdp, trickle, now + TIME)
    sql.run(
        "INSERT INTO offers (id, part_id, caller_type, caller, sdp, trickle, created, expires) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        offer.id,
        part,
        caller.type,
        caller.name,
        sdp,
        int(trickle),
        stored(now),
        stored(offer.expires),
    )
    sql.notify(OFFERED, part)
    return offer


def take(sql: Sql, part: str, now: datetime) -> Offer | None:
    """Return the oldest open offer to a part that was not returned before; None if there is none."""
    row = sql.row(
        "SELECT * FROM offers WHERE part_id = ? AND taken = 0 AND ended = 0 AND expires > ? "
        f"ORDER BY created, id LIMIT 1{sql.skip_locked}",
        part,
        stored(now),
    )
    if row is None:
        return None
    sql.run("UPDATE offers SET taken = 1 WHERE id = ?", row["id"])
    return _offer(row)


def offer_of(sql: Sql, offer: str, now: datetime) -> tuple[Offer, bool]:
    """Return an offer that has not expired, and whether its caller has ended it; NOT_FOUND."""
    row = sql.row("SELECT * FROM offers WHERE id = ? AND expires > ?", offer, stored(now))
    if row is None:
        raise unknown(offer)
    return _offer(row), bool(row["ended"])


def unknown(offer: str) -> MachineError:
    """Return the error for an offer that does not exist, has expired, or belongs to another caller."""
    return MachineError(
        f"there is no connection attempt {offer[:40]!r}",
        kind=ErrorKind.NOT_FOUND,
        remedy=f"connect again; an attempt ends after {TIME.total_seconds():g} s",
    )


def send(sql: Sql, offer: Offer, receiver: End, content: Mapping[str, Any]) -> None:
    """Store a signal and notify its receiver. INVALID if it is too large, EXHAUSTED if there are too many.

    `content` is a stage of the published messages, whose session description the caller has checked.
    """
    text = json.dumps(content, separators=(",", ":"))
    if "init" not in content:
        SIGNAL.check(len(text), "the message")
    count = _count(sql, offer, receiver)
    SIGNALS.check_count(count, "this connection attempt")
    _store(sql, offer, receiver, text, count)
    sql.notify(SIGNALLED, offer.id)


def _count(sql: Sql, offer: Offer, receiver: End) -> int:
    """Return the number of signals for one end, which stays the same until the end of the transaction."""
    sql.in_turn(f"signals {offer.id}")
    row = sql.row("SELECT COUNT(*) AS count FROM signals WHERE offer_id = ? AND receiver = ?", offer.id, receiver.value)
    return int(row["count"]) if row is not None else 0


def _store(sql: Sql, offer: Offer, receiver: End, text: str, number: int) -> None:
    sql.run(
        "INSERT INTO signals (offer_id, receiver, number, part_id, content) VALUES (?, ?, ?, ?, ?)",
        offer.id,
        receiver.value,
        number,
        offer.part,
        text,
    )


def received(sql: Sql, offer: str, receiver: End, begin: int) -> Sequence[PeerSignal]:
    """Return the signals for one end in their order, from the number `begin` on."""
    rows = sql.rows(
        "SELECT number, content FROM signals WHERE offer_id = ? AND receiver = ? AND number >= ? ORDER BY number",
        offer,
        receiver.value,
        begin,
    )
    return [PeerSignal(row["number"], json.loads(row["content"])) for row in rows]


ABANDONED: Final[Mapping[str, Any]] = {
    "error": {"status": {"code": Status.ABORTED.value, "message": "the caller has ended its call"}}
}
"""Signal to a machine whose caller has left; its meaning is "no longer needed" if the two are connected."""


def end(sql: Sql, offer: Offer, *, abandoned: bool) -> None:
    """Record that the caller has ended an offer. It is kept until it expires, without its content.

    If the machine still works on it, it is `abandoned`, and the machine receives ABANDONED.
    """
    if abandoned:
        _store(sql, offer, End.MACHINE, json.dumps(ABANDONED), _count(sql, offer, End.MACHINE))
    sql.run("UPDATE offers SET ended = 1, sdp = '' WHERE id = ?", offer.id)
    sql.notify(SIGNALLED, offer.id)


def expire(sql: Sql, now: datetime) -> int:
    """Delete expired offers and their signals; return how many offers."""
    moment = stored(now)
    sql.run("DELETE FROM signals WHERE offer_id IN (SELECT id FROM offers WHERE expires <= ?)", moment)
    return sql.run("DELETE FROM offers WHERE expires <= ?", moment)


def _offer(row: Row) -> Offer:
    caller = Author(row["caller_type"], row["caller"])
    return Offer(row["id"], row["part_id"], caller, row["sdp"], bool(row["trickle"]), moment_of(row["expires"]))
