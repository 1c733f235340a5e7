"""Invitations. Opening the link of an invitation in time gives a key with its roles, once.

Only the digest of a link is stored, so access to the database, a log or a backup is not enough to accept it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from cloud.domain.organizations import keys
from cloud.domain.organizations.keys import Grant
from cloud.domain.organizations.tenants import missing
from cloud.domain.people import people
from cloud.domain.permissions.access import GRANT_KINDS, place_of
from cloud.store.sql import Sql, inserted
from cloud.values.names import new_secret
from cloud.values.times import moment_of, stored
from rpc.access import digest_of
from schema import ErrorKind, MachineError

LIFE: Final = timedelta(days=7)
MAX_OPEN: Final = 100  # open invitations of an organization: each may send an email to a stranger
TOPIC: Final = "invite"  # event topic: an invitation is to be mailed

Mail = Literal["none", "waiting", "sent", "failed"]


@dataclass(frozen=True, slots=True)
class Invite:
    """An open invitation. `error` says why it could not be mailed."""

    organization_id: str
    email: str
    created: datetime
    expires: datetime
    inviter: str  # id of the inviting key
    inviter_name: str
    grants: tuple[Grant, ...]
    mail: Mail
    tries: int
    error: str


_INVITE: Final = """
    SELECT organization_id, email, created, expires, inviter, inviter_name, mail, tries, error FROM invites
"""


def create(
    sql: Sql, owner: str, email: str, grants: Iterable[Grant], inviter: tuple[str, str], now: datetime, *, mail: bool
) -> Invite:
    """Invite a person; EXISTS if the person is a member or invited already.

    `inviter` is id and name of a key; with `mail` the link is sent by email.
    """
    email, granted = people.checked_email(email), list(dict.fromkeys(grants))
    _check(granted)
    if any(member.email == email for member in people.members(sql, owner)):
        raise MachineError(
            f"{email} is already a member",
            kind=ErrorKind.EXISTS,
            remedy="change the roles of the member's key, or rotate it",
        )
    expire(sql, now)
    invited = [invitation.email for invitation in open_invites(sql, owner, now)]
    if email in invited:
        raise MachineError(f"{email} is already invited", kind=ErrorKind.EXISTS, remedy="send the invitation again")
    if len(invited) >= MAX_OPEN:
        raise MachineError(
            f"{MAX_OPEN} invitations are open, which is the maximum",
            kind=ErrorKind.EXHAUSTED,
            remedy="withdraw those that are no longer needed",
        )
    inserted(
        sql,
        "invites",
        {
            "organization_id": owner,
            "email": email,
            "created": stored(now),
            "expires": stored(now + LIFE),
            "inviter": inviter[0],
            "inviter_name": inviter[1],
            "mail": "waiting" if mail else "none",
            "due": stored(now) if mail else None,
        },
    )
    for grant in granted:
        _add_grant(sql, owner, email, grant)
    sql.notify(TOPIC, owner)
    return invite(sql, owner, email, now)


def invite(sql: Sql, owner: str, email: str, now: datetime) -> Invite:
    """Return one open invitation; NOT_FOUND."""
    address = email.strip().lower()
    row = sql.row(f"{_INVITE} WHERE organization_id = ? AND email = ? AND expires > ?", owner, address, stored(now))
    if row is None:
        raise missing("invitation of", email)
    return _invite(sql, row)


def open_invites(sql: Sql, owner: str, now: datetime) -> list[Invite]:
    """Return the open invitations of an organization, ordered by address."""
    rows = sql.rows(f"{_INVITE} WHERE organization_id = ? AND expires > ? ORDER BY email", owner, stored(now))
    return [_invite(sql, row) for row in rows]


def change(sql: Sql, invitation: Invite, add: Iterable[Grant], remove: Iterable[Grant]) -> None:
    """Remove and add roles; an added role replaces one at the same resource. INVALID if no role would be left."""
    remaining = {(grant.kind, grant.subject): grant for grant in invitation.grants}
    for grant in remove:
        if remaining.get((grant.kind, grant.subject)) != grant:
            raise missing("authorization", f"{grant.kind}_{grant.role}")
        del remaining[grant.kind, grant.subject]
    remaining |= {(grant.kind, grant.subject): grant for grant in add}
    _check(list(remaining.values()))
    _delete_grants(sql, invitation.organization_id, invitation.email)
    for grant in remaining.values():
        _add_grant(sql, invitation.organization_id, invitation.email, grant)


def renew(sql: Sql, invitation: Invite, now: datetime, *, mail: bool) -> None:
    """Extend an invitation to LIFE from now and void its link. With `mail` a new link is sent."""
    sql.run(
        """
        UPDATE invites SET digest = NULL, expires = ?, mail = ?, due = ?, tries = 0, error = ''
        WHERE organization_id = ? AND email = ?
        """,
        stored(now + LIFE),
        "waiting" if mail else "none",
        stored(now) if mail else None,
        invitation.organization_id,
        invitation.email,
    )
    sql.notify(TOPIC, invitation.organization_id)


def link(sql: Sql, invitation: Invite) -> str:
    """Create a link, which voids the previous one; return its secret, which cannot be read later."""
    secret = new_secret()
    sql.run(
        "UPDATE invites SET digest = ? WHERE organization_id = ? AND email = ?",
        digest_of(secret),
        invitation.organization_id,
        invitation.email,
    )
    return secret


def withdraw(sql: Sql, invitation: Invite) -> None:
    """Delete an invitation; its link is void at once."""
    _delete(sql, invitation.organization_id, invitation.email)


def forget(sql: Sql, owner: str) -> None:
    """Delete all invitations of an organization."""
    for row in sql.rows("SELECT email FROM invites WHERE organization_id = ?", owner):
        _delete(sql, owner, row["email"])


def expire(sql: Sql, now: datetime) -> int:
    """Delete expired invitations; return their number."""
    rows = sql.rows("SELECT organization_id, email FROM invites WHERE expires <= ?", stored(now))
    for row in rows:
        _delete(sql, row["organization_id"], row["email"])
    return len(rows)


# ---- accepting


def opened(sql: Sql, secret: str, now: datetime) -> Invite:
    """Return the invitation for a link; NOT_FOUND, identical for unknown, expired and accepted ones."""
    row = sql.row(f"{_INVITE} WHERE digest = ? AND expires > ?", digest_of(secret), stored(now))
    if row is None:
        raise MachineError(
            "this invitation is not valid, or no longer valid", kind=ErrorKind.NOT_FOUND, remedy="ask for a new one"
        )
    return _invite(sql, row)


def accept(sql: Sql, secret: str, now: datetime) -> tuple[Invite, str, str]:
    """Make the person a member; return the invitation, the id of the new key, and the key, which cannot be read later.

    Roles at resources that were deleted since are left out; PRECONDITION if no role is left.
    """
    invitation = opened(sql, secret, now)
    grants = [grant for grant in invitation.grants if _is_there(sql, invitation.organization_id, grant)]
    if not grants:
        raise MachineError(
            "the resources that this invitation gives access to were deleted",
            kind=ErrorKind.PRECONDITION,
            remedy="ask for a new one",
        )
    person = people.find_or_create(sql, invitation.email, now)
    withdraw(sql, invitation)
    subject, key = keys.create_key(sql, invitation.organization_id, invitation.email, grants, now, person)
    return invitation, subject, key


def _is_there(sql: Sql, owner: str, grant: Grant) -> bool:
    """Return whether keys of an organization can still have this role: not if it was deleted or is no longer shared."""
    try:
        return place_of(sql, GRANT_KINDS[grant.kind], grant.subject).reached_by(owner)
    except MachineError:
        return False


# ---- mailing


def next_due(sql: Sql, now: datetime) -> datetime | None:
    """Return when the next invitation is to be mailed; None if none is."""
    row = sql.row("SELECT MIN(due) AS due FROM invites WHERE expires > ?", stored(now))
    return None if row is None or row["due"] is None else moment_of(row["due"])


def take(sql: Sql, now: datetime, lease: timedelta) -> tuple[Invite, str] | None:
    """Take an invitation to mail, for the duration `lease`; return it with the secret of a new link, or None."""
    row = sql.row(
        f"{_INVITE} WHERE due <= ? AND expires > ? ORDER BY due, email LIMIT 1 {sql.skip_locked}",
        *[stored(now)] * 2,
    )
    if row is None:
        return None
    invitation = _invite(sql, row)
    sql.run(
        "UPDATE invites SET due = ? WHERE organization_id = ? AND email = ?",
        stored(now + lease),
        invitation.organization_id,
        invitation.email,
    )
    return invitation, link(sql, invitation)


def mailed(sql: Sql, secret: str, error: str, retry_at: datetime | None) -> None:
    """Record the result of an attempt; ignored if the link is void."""
    sql.run(
        "UPDATE invites SET mail = ?, error = ?, due = ?, tries = tries + 1 WHERE digest = ?",
        "sent" if not error else "failed" if retry_at is None else "waiting",
        error,
        None if retry_at is None else stored(retry_at),
        digest_of(secret),
    )


# ---- rows


def _invite(sql: Sql, row: Mapping[str, Any]) -> Invite:
    grants = sql.rows(
        "SELECT role, kind, subject FROM invite_grants WHERE organization_id = ? AND email = ? ORDER BY kind, subject",
        row["organization_id"],
        row["email"],
    )
    return Invite(
        row["organization_id"],
        row["email"],
        moment_of(row["created"]),
        moment_of(row["expires"]),
        row["inviter"],
        row["inviter_name"],
        tuple(Grant(grant["role"], grant["kind"], grant["subject"]) for grant in grants),
        row["mail"],
        row["tries"],
        row["error"],
    )


def _check(grants: Sequence[Grant]) -> None:
    if not grants:
        raise MachineError("an invitation needs a role", kind=ErrorKind.INVALID, remedy="give at least one")
    if len({(grant.kind, grant.subject) for grant in grants}) < len(grants):
        raise MachineError("two roles at one resource", kind=ErrorKind.INVALID, remedy="give one role at each")


def _add_grant(sql: Sql, owner: str, email: str, grant: Grant) -> None:
    row = {"organization_id": owner, "email": email, "role": grant.role, "kind": grant.kind, "subject": grant.subject}
    inserted(sql, "invite_grants", row)


def _delete_grants(sql: Sql, owner: str, email: str) -> None:
    sql.run("DELETE FROM invite_grants WHERE organization_id = ? AND email = ?", owner, email)


def _delete(sql: Sql, owner: str, email: str) -> None:
    _delete_grants(sql, owner, email)
    sql.run("DELETE FROM invites WHERE organization_id = ? AND email = ?", owner, email)
