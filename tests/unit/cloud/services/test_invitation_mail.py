"""Invitations by mail: sent once, retried with a new link, and never awaited by a call."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from email.message import EmailMessage

import pytest
import trio

from cloud.domain.people import invites
from cloud.server.memory import APP, MemoryCloud
from cloud.services.organizations.invitation_mail import InvitationMail
from schema.errors import MachineError
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.services.test_members import ADA, accept, invite, secret
from triggers.retry import AttemptOutcome


class Post:
    """A mail server with prepared answers that keeps the messages it received."""

    def __init__(self) -> None:
        self.answers: list[AttemptOutcome | None] = []  # None: never answers
        self.got: list[EmailMessage] = []
        self.came = trio.Event()

    async def send(self, message: EmailMessage) -> AttemptOutcome:
        self.got.append(message)
        self.came.set()
        answer = self.answers.pop(0) if self.answers else AttemptOutcome(250)
        if answer is None:
            await trio.sleep_forever()
        assert answer is not None
        return answer

    def link(self, number: int = -1) -> str:
        """Return the secret in a message."""
        (text,) = re.findall(r"http://cloud.test/invites/(\S+)", self.got[number].get_content())
        return str(text)


@pytest.fixture
def post() -> Post:
    return Post()


@pytest.fixture
async def mailing(cloud: MemoryCloud, post: Post) -> AsyncIterator[MemoryCloud]:
    async with trio.open_nursery() as nursery:
        created = MemoryCloud(replace(cloud.cloud, mails=True), cloud.first)
        mail = InvitationMail(created.cloud, post.send, "Cloud <cloud@example.com>")
        await nursery.start(mail.run)
        yield created
        nursery.cancel_scope.cancel()


async def state(cloud: MemoryCloud, expected: str) -> invites.Invite:
    """Wait until the invitation has this state and return it."""
    now, organization = cloud.cloud.clock, cloud.first.organization
    with trio.fail_after(30):
        while True:
            result = await cloud.cloud.store.read(lambda sql: invites.invite(sql, organization, ADA, now()))
            if result.mail == expected and (expected != "waiting" or result.tries):
                return result
            await trio.lowlevel.checkpoint()


async def test_only_the_mailed_link_is_valid(mailing: MemoryCloud, post: Post) -> None:
    await invite(mailing)
    await state(mailing, "sent")
    (message,) = post.got
    assert (message["To"], message["From"]) == (ADA, "Cloud <cloud@example.com>")
    assert message["Subject"] == "Invitation to Test"
    assert "owner invites you to Test" in message.get_content()
    await accept(mailing, post.link())


async def test_without_a_mail_server_no_mail_is_sent(mailing: MemoryCloud, post: Post) -> None:
    values = {"organization_id": mailing.first.organization, "send_email_invite": False}
    await mailing.client().call(APP, "", "create_organization_invite", email=ADA, **values)
    await invite(mailing, "bob@example.com")
    with trio.fail_after(30):
        await post.came.wait()
    assert [item["To"] for item in post.got] == ["bob@example.com"]


async def test_a_failure_is_reported_and_retried_with_a_new_link(
    mailing: MemoryCloud, post: Post, clock: Clock
) -> None:
    post.answers = [AttemptOutcome(451, "come back later")]
    await invite(mailing)
    result = await state(mailing, "waiting")
    assert result.error == "come back later"
    clock.now += timedelta(days=1)
    await invite(mailing, "bob@example.com")  # only wakes the worker: the time alone would be enough
    assert (await state(mailing, "sent")).error == ""
    assert post.link(0) != post.link(1)
    with pytest.raises(MachineError):
        await accept(mailing, post.link(0))
    sent = next(number for number, first in enumerate(post.got) if number and first["To"] == ADA)
    await accept(mailing, post.link(sent))


async def test_an_unknown_recipient_gets_no_second_mail(mailing: MemoryCloud, post: Post) -> None:
    post.answers = [AttemptOutcome(550, "no such user", final=True)]
    await invite(mailing)
    assert (await state(mailing, "failed")).error == "no such user"
    assert await mailing.cloud.store.read(lambda sql: invites.next_due(sql, mailing.cloud.clock())) is None


async def test_a_hanging_mail_server_delays_no_call(mailing: MemoryCloud, post: Post) -> None:
    post.answers = [None]
    await invite(mailing)
    with trio.fail_after(30):
        await post.came.wait()
        await invite(mailing, "bob@example.com")
        await mailing.app("delete_organization_invite", organization_id=mailing.first.organization, email=ADA)
    with pytest.raises(MachineError):
        await accept(mailing, post.link())


async def test_a_late_mail_does_not_replace_a_shown_link(mailing: MemoryCloud, post: Post, clock: Clock) -> None:
    post.answers = [AttemptOutcome(451, "come back later")]
    await invite(mailing)
    await state(mailing, "waiting")
    shown = await secret(mailing)
    clock.now += timedelta(days=1)
    await invite(mailing, "bob@example.com")
    post.came = trio.Event()
    with trio.fail_after(30):
        while len(post.got) < 2:
            await trio.lowlevel.checkpoint()
    assert [item["To"] for item in post.got] == [ADA, "bob@example.com"]
    await accept(mailing, shown)
