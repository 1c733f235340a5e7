"""Acceptance of invitations. The secret of the link is the credential; no key is needed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cloud.domain.machines.machines import machine
from cloud.domain.organizations.keys import Grant
from cloud.domain.organizations.tenants import location, organization
from cloud.domain.people import invites
from cloud.domain.people.invites import Invite
from cloud.domain.permissions import audit
from cloud.services.common.base import Cloud
from cloud.store.sql import Sql
from cloud.values.author import PERSON, Author
from schema import MachineError


@dataclass(frozen=True, slots=True)
class OpenedInvite:
    """An invitation, as the page of its link shows it."""

    organization: str
    email: str
    inviter: str
    expires: datetime
    roles: tuple[tuple[str, str], ...]  # role, and where it applies


async def opened_invite(cloud: Cloud, secret: str) -> OpenedInvite:
    """Return the invitation of a link; NOT_FOUND if it is not valid."""
    return await cloud.store.read(lambda sql: _opened(sql, invites.opened(sql, secret, cloud.clock())))


async def accept_invite(cloud: Cloud, secret: str) -> tuple[OpenedInvite, str, str]:
    """Accept an invitation; return it with id and secret of the new key. NOT_FOUND if the link is not valid."""

    def work(sql: Sql) -> tuple[OpenedInvite, str, str]:
        now = cloud.clock()
        opened = _opened(sql, invites.opened(sql, secret, now))
        invite, subject, key = invites.accept(sql, secret, now)
        detail = {
            "called": invite.email,
            "invited_by": invite.inviter_name,
            "roles": [_role(grant) for grant in invite.grants],
        }
        person = Author(PERSON, invite.email)
        audit.note(sql, invite.organization_id, person, "accept_invitation", subject, detail, now)
        return opened, subject, key

    # A read rejects wrong links, so that only valid ones compete for the write transaction.
    await cloud.store.read(lambda sql: invites.opened(sql, secret, cloud.clock()))
    return await cloud.store.write(work)


def _opened(sql: Sql, invite: Invite) -> OpenedInvite:
    return OpenedInvite(
        organization(sql, invite.organization_id).name,
        invite.email,
        invite.inviter_name,
        invite.expires,
        tuple((grant.role, _where(sql, grant)) for grant in invite.grants),
    )


def _where(sql: Sql, grant: Grant) -> str:
    try:
        if grant.kind == "organization":
            return "the whole organization"
        if grant.kind == "location":
            return f"the location {location(sql, grant.subject).name}"
        return f"the machine {machine(sql, grant.subject).name}"
    except MachineError:
        return "an object that was deleted"


def _role(grant: Grant) -> str:
    return f"{grant.kind}_{grant.role} {grant.subject}"
