"""Senders of deliveries: a Send for each type."""

from __future__ import annotations

import email
import email.policy
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from email.message import EmailMessage
from email.utils import parseaddr

from cloud.domain.triggering.deliveries import Delivery
from cloud.domain.triggering.outbox import Send
from cloud.domain.triggering.ways import DeliverySettings
from triggers import (
    EMAIL,
    OWNERS,
    WEBHOOK,
    AttemptOutcome,
    Mailer,
    Notification,
    WebhookRequest,
    deliver,
    signed_request,
)


@asynccontextmanager
async def senders(ways: DeliverySettings) -> AsyncIterator[Mapping[str, Send]]:
    """Open a Send for each type of delivery that this cloud can make."""

    async def webhook(delivery: Delivery, notification: Notification, secret: str, now: datetime) -> AttemptOutcome:
        request = WebhookRequest(delivery.method, delivery.target, delivery.headers, delivery.body)
        return await deliver(signed_request(notification, secret, request, delivery.id, now), ways.allow)

    if ways.smtp is None:
        yield {WEBHOOK: webhook, EMAIL: _unsent}
        return
    sender = ways.smtp.sender
    async with Mailer(ways.smtp).opened() as mailer:

        async def mail(delivery: Delivery, notification: Notification, secret: str, now: datetime) -> AttemptOutcome:
            return _without_recipients(delivery) or await mailer.deliver(message_of(delivery, sender))

        yield {WEBHOOK: webhook, EMAIL: mail}


async def _unsent(delivery: Delivery, notification: Notification, secret: str, now: datetime) -> AttemptOutcome:
    reason = (
        "this cloud has no mail server: start machine-cloud with --smtp HOST:PORT; deliveries of triggers can then be "
        "replayed"
    )
    return _without_recipients(delivery) or AttemptOutcome(error=reason, final=True)


def _without_recipients(delivery: Delivery) -> AttemptOutcome | None:
    """Return the outcome for an email without recipients; None if it has one."""
    if delivery.target != OWNERS:
        return None
    return AttemptOutcome(
        error="the owners have no email address: set `email` in the metadata of the machine, its location or "
        "the organization, or use an address in the trigger",
        final=True,
    )


def message_of(delivery: Delivery, sender: str = "") -> EmailMessage:
    """Return the email of a delivery, with `sender` as From if set. All attempts have the same Message-ID."""
    message = email.message_from_bytes(delivery.body, policy=email.policy.SMTP)
    if sender:
        domain = parseaddr(sender)[1].rpartition("@")[2]
        for name, value in (("From", sender), ("Message-ID", f"<{delivery.id}@{domain}>")):
            del message[name]
            message[name] = value
    return message
