"""Messages about the ends of training jobs, to the targets of their organization."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from cloud.domain.organizations.tenants import organization
from cloud.domain.triggering import training_targets
from cloud.domain.triggering.deliveries import PLACEHOLDER_SENDER, Delivery, Page
from cloud.domain.triggering.queue import Queued
from cloud.store.sql import Sql
from cloud.values.names import new_id
from triggers import EMAIL, TRAINING, WEBHOOK, Notification, TrainingEnded, about_training, mail_about_training


def messages(sql: Sql, queued: Queued, page: Page) -> Iterator[Delivery]:
    """Yield a delivery for each target of the organization of an event; none if the organization was deleted."""
    event = queued.event
    assert isinstance(event, TrainingEnded)
    chosen = training_targets.all_of(sql, queued.part)
    if not chosen:
        return
    name, link = organization(sql, queued.part).name, page(f"/training/{quote(event.job_id)}")
    for target in chosen:
        common: dict[str, Any] = {
            "id": new_id(),
            "part": queued.part,
            "trigger": TRAINING,
            "event": TRAINING,
            "entry": "",
            "type": target.type,
            "value": target.value,
            "target": target.value,
            "about": {"job": event.job_id},
            "test": False,
            "created": queued.happened,
        }
        if target.type == WEBHOOK:
            request = about_training(event, target.value, queued.part, name, link)
            yield Delivery(method=request.method, headers=request.headers, body=request.body, **common)
        else:
            message = mail_about_training(
                event,
                name,
                common["id"],
                queued.happened,
                sender=PLACEHOLDER_SENDER,
                recipient=target.value,
                link=link,
            )
            yield Delivery(method="", headers=(), body=message.as_bytes(), **common)


def target(sql: Sql, owner: str, kind: str, value: str) -> Notification | None:
    """Return a target of an organization as it is now; None if it was removed."""
    current = training_targets.get(sql, owner, kind, value)
    if current is None:
        return None
    return Notification(type="email" if kind == EMAIL else "webhook", value=value, secret=current.secret)
