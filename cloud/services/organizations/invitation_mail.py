"""Sends invitations by mail. Links are created when they are sent, so that only their digests are stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from email.message import EmailMessage
from email.utils import formatdate, parseaddr
from functools import partial
from typing import Any, Final

import structlog
import trio

from cloud.domain.organizations.tenants import organization
from cloud.domain.people import invites
from cloud.domain.people.invites import Invite
from cloud.domain.triggering.ways import DeliverySettings
from cloud.services.common.base import Cloud
from cloud.services.organizations.people import link_of
from cloud.store.sql import Sql
from cloud.values.names import new_id
from nursery_graph import Node, Restart
from triggers import AttemptOutcome, Mailer, SmtpSettings, next_try

LIMIT: Final = 60.0  # seconds for one attempt
LEASE: Final = timedelta(seconds=75)  # LIMIT, plus time to record the result

Send = Callable[[EmailMessage], Awaitable[AttemptOutcome]]


def nodes(ways: DeliverySettings, restart: Restart) -> list[Node]:
    """Return the nodes: none without a mail server. The port is required because links contain its address."""
    if ways.smtp is None:
        return []
    return [Node("invitations", partial(_mail, ways.smtp), requires={"cloud", "port"}, restart=restart)]


async def _mail(settings: SmtpSettings, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
    async with Mailer(settings).opened() as mailer:
        await InvitationMail(deps["cloud"], mailer.deliver, settings.sender).run(task_status=task_status)


class InvitationMail:
    """Sends invitations; run once per process that has a mail server. `sender` is the From address."""

    def __init__(self, cloud: Cloud, send: Send, sender: str) -> None:
        self._cloud = cloud
        self._send = send
        self._sender = sender
        self._log: structlog.stdlib.BoundLogger = structlog.get_logger("cloud.invitations")

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Send invitations one at a time until cancelled: new ones immediately, failed ones when they are due again."""
        with self._cloud.events.listening(invites.TOPIC) as news:
            task_status.started()
            while True:
                while await self._send_one():
                    pass
                later = await self._cloud.store.read(lambda sql: invites.next_due(sql, self._cloud.clock()))
                wait = float("inf") if later is None else (later - self._cloud.clock()).total_seconds()
                with trio.move_on_after(max(0.0, wait)):
                    await news.all()

    async def _send_one(self) -> bool:
        """Send one invitation that is due; False if there is none."""
        now = self._cloud.clock()

        def take(sql: Sql) -> tuple[Invite, str, str] | None:
            taken = invites.take(sql, now, LEASE)
            return None if taken is None else (*taken, organization(sql, taken[0].organization_id).name)

        taken = await self._cloud.store.write(take)
        if taken is None:
            return False
        invite, secret, name = taken
        outcome = AttemptOutcome(error=f"the mail server did not answer within {LIMIT:g} s")
        with trio.move_on_after(LIMIT):
            outcome = await self._send(message(invite, name, link_of(self._cloud.links.base, secret), self._sender))
        wait = next_try(outcome, invite.tries + 1, invite.email)
        retry_at = None if wait is None else self._cloud.clock() + timedelta(seconds=wait)
        await self._cloud.store.write(lambda sql: invites.mailed(sql, secret, outcome.error, retry_at))
        if outcome.error:
            self._log.warning("an invitation was not mailed", organization=name, error=outcome.error, again=retry_at)
        return True


def message(invite: Invite, organization_name: str, link: str, sender: str) -> EmailMessage:
    """Return the mail of an invitation."""
    mail = EmailMessage()
    mail["From"] = sender
    mail["To"] = invite.email
    mail["Subject"] = f"Invitation to {organization_name}"
    mail["Date"] = formatdate()
    mail["Message-ID"] = f"<{new_id()}@{parseaddr(sender)[1].rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: suppresses automatic replies
    mail.set_content(
        f"{invite.inviter_name} invites you to {organization_name}.\n\n"
        f"Open this address to accept. It works once, until {invite.expires:%Y-%m-%d %H:%M} UTC:\n\n"
        f"{link}\n\n"
        "Anyone with this address can accept in your place: do not share it. Ignore this mail if it is unexpected.\n"
    )
    return mail
