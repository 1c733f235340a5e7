"""Codes that install one part: each gives its credentials to one computer, once, within its lifetime."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cloud.store.sql import Sql, Value, inserted
from cloud.values.author import Author
from cloud.values.names import new_id, new_secret
from cloud.values.times import moment_of, stored
from rpc.access import digest_of
from schema import ErrorKind, MachineError

TOPIC: Final = "install code"
"""Topic of events about codes; the subject is the part."""

LIFETIME: Final = timedelta(hours=24)
"""Time from creation to expiry."""

REPEATED: Final = timedelta(minutes=10)
"""Time after the use within which the same computer may ask again, because the answer may have been lost."""

PREFIX: Final = "install-"
"""Beginning of the id of a code, by which the installer tells it from a key."""

_NEW_LINE: Final = "get a new line on the machine's page: Get install command"


@dataclass(frozen=True, slots=True)
class CodeState:
    """The newest code of a part."""

    created: datetime
    ends: datetime
    used: datetime | None


@dataclass(frozen=True, slots=True)
class Claimed:
    """A code that was accepted: its part, and who created it."""

    id: str
    part: str
    author: Author
    again: bool  # the same computer had used it before


def create(sql: Sql, part: str, author: Author, now: datetime) -> tuple[str, str, datetime]:
    """Create a code for a part in place of its former ones; return its id, the secret and the expiry."""
    sql.run("DELETE FROM install_codes WHERE part_id = ?", part)
    subject, secret, ends = f"{PREFIX}{new_id()}", new_secret(), now + LIFETIME
    row: dict[str, Value] = {"id": subject, "part_id": part, "digest": digest_of(secret), "created": stored(now)}
    inserted(
        sql,
        "install_codes",
        {**row, "ends": stored(ends), "author_type": author.type, "author": author.name, "claim": ""},
    )
    sql.notify(TOPIC, part)
    return subject, secret, ends


def state_of(sql: Sql, part: str) -> CodeState | None:
    """Return the newest code of a part; None if there is none, or it expired long ago."""
    row = sql.row("SELECT created, ends, used FROM install_codes WHERE part_id = ?", part)
    if row is None:
        return None
    used = None if row["used"] is None else moment_of(row["used"])
    return CodeState(moment_of(row["created"]), moment_of(row["ends"]), used)


def claim(sql: Sql, subject: str, secret: str, nonce: str, now: datetime) -> Claimed:
    """Use a code. `nonce` is a random text of the computer, with which it may repeat the call within REPEATED.

    UNAUTHENTICATED for an unknown code or a wrong secret, PRECONDITION if it has expired, or another computer used it.
    """
    row = sql.row(
        "SELECT part_id, digest, ends, used, claim, author_type, author FROM install_codes WHERE id = ?", subject
    )
    if row is None or not hmac.compare_digest(row["digest"], digest_of(secret)):
        raise MachineError("the key in the line is not valid", kind=ErrorKind.UNAUTHENTICATED, remedy=_NEW_LINE)
    ends, mark = moment_of(row["ends"]), digest_of(nonce)
    author = Author(row["author_type"], row["author"])
    if ends <= now:
        raise MachineError(
            f"the line expired at {ends:%Y-%m-%d %H:%M} UTC", kind=ErrorKind.PRECONDITION, remedy=_NEW_LINE
        )
    claimed = sql.run(
        "UPDATE install_codes SET used = ?, claim = ? WHERE id = ? AND used IS NULL", stored(now), mark, subject
    )
    if claimed:
        sql.notify(TOPIC, row["part_id"])
        return Claimed(subject, row["part_id"], author, again=False)
    again = sql.row("SELECT used, claim FROM install_codes WHERE id = ?", subject)
    if again is None or not hmac.compare_digest(again["claim"], mark) or moment_of(again["used"]) + REPEATED <= now:
        used = "" if again is None else f" at {moment_of(again['used']):%Y-%m-%d %H:%M} UTC"
        raise MachineError(f"the line was used{used}, and works once", kind=ErrorKind.PRECONDITION, remedy=_NEW_LINE)
    return Claimed(subject, row["part_id"], author, again=True)


def expire(sql: Sql, now: datetime) -> int:
    """Delete codes a day after their expiry; return their number."""
    return sql.run("DELETE FROM install_codes WHERE ends <= ?", stored(now - LIFETIME))
