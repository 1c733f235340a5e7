"""Messages of machine.cloud.v1.InvitationService."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class Grant(Struct, frozen=True):
    """A role at a resource: `role` is owner or operator, `kind` organization, location or robot, `subject` its id."""

    role: str
    kind: str
    subject: str


class Invite(Struct, frozen=True):
    """An open invitation. `mail` is its state: none, waiting, sent or failed; `error` says why it was not mailed."""

    organization_id: str
    email: str
    created: datetime
    expires: datetime
    inviter_name: str
    grants: list[Grant]
    mail: str
    error: str


class ListInvitesResponse(Struct, frozen=True):
    """The open invitations of an organization; `mails` says whether the cloud has a mail server."""

    invites: list[Invite]
    mails: bool
