"""Members on the keys page, and the page that accepts an invitation."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from cloud.domain.permissions import audit
from cloud.domain.permissions.audit import AuditQuery
from cloud.server.memory import MemoryCloud
from rpc.access.attempts import ADDRESS_FAILURES, FAILURES
from tests.unit.cloud.pages import browser, post, signed_in
from tests.unit.cloud.services.test_members import ADA, invite, listed, role, secret
from tests.unit.cloud.web.test_web_keys import shown
from tests.unit.runtime.parts.web.client import HTML, Browser


@pytest.fixture
async def person(cloud: MemoryCloud) -> Browser:
    return await signed_in(cloud)


def link(html: str) -> str:
    """Return the path of the link that a page shows."""
    (text,) = re.findall(r'<pre[^>]* aria-label="Link">http://cloud.test(/invites/[^<]+)</pre>', html)
    return str(text)


async def invited(cloud: MemoryCloud, person: Browser, place: str = "", email: str = ADA) -> str:
    organization = cloud.first.organization
    reply = await post(
        person,
        "/members",
        organization=organization,
        email=email,
        role="operator",
        place=place or f"organization/{organization}",
    )
    assert reply.status == 200, reply.text
    return link(reply.text)


async def test_an_accepted_invitation_shows_a_key_once(cloud: MemoryCloud, machine: str, person: Browser) -> None:
    path = await invited(cloud, person, f"robot/{machine}")
    page = (await person.get("/keys")).text
    assert ADA in page
    assert path not in page
    stranger = browser(cloud)
    looked = await stranger.get(path)
    assert looked.status == 200
    for words in ("Invitation to Test", "owner invites", ADA, "operator", "the machine rover"):
        assert words in looked.text, words
    assert await listed(cloud) == ([], [ADA])  # opening the link does not accept the invitation
    assert looked.headers["cache-control"] == "no-store"
    assert looked.headers["referrer-policy"] == "same-origin"
    accepted = await post(stranger, path)
    assert accepted.status == 200
    assert "Welcome to Test" in accepted.text
    her = await signed_in(cloud, shown(accepted.text))
    assert (await her.get(f"/machines/{machine}")).status == 200
    assert await listed(cloud) == ([ADA], [])
    for reply in (await post(stranger, path), await stranger.get(path)):
        assert reply.status == 404
        assert "not valid, or no longer valid" in reply.text


async def test_invitations_are_accepted_only_from_this_site(cloud: MemoryCloud, person: Browser) -> None:
    path = await invited(cloud, person)
    headers = {**HTML, "origin": "http://evil.example", "content-type": "application/x-www-form-urlencoded"}
    assert (await browser(cloud).send("POST", path, headers, b"")).status == 403
    assert await listed(cloud) == ([], [ADA])


async def test_wrong_links_are_throttled_per_link_and_address(cloud: MemoryCloud, person: Browser) -> None:
    path = await invited(cloud, person)
    stranger = browser(cloud)
    for _ in range(FAILURES):
        assert (await stranger.get("/invites/old")).status == 404
    refused = await stranger.get("/invites/old")
    assert refused.status == 429
    assert "not valid, or no longer valid" in refused.text
    for number in range(ADDRESS_FAILURES - FAILURES):
        assert (await stranger.get(f"/invites/guess{number}")).status == 404
    assert (await stranger.get("/invites/guess")).status == 429
    assert (await post(stranger, "/invites/guess")).status == 429
    # A valid link still works from a throttled address.
    assert (await stranger.get(path)).status == 200
    assert (await post(stranger, path)).status == 200


async def test_a_wrong_link_causes_no_write(cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    async def write(work: object) -> None:
        raise AssertionError("the database was to be written")

    monkeypatch.setattr(cloud.cloud.store, "write", write)
    assert (await post(browser(cloud), "/invites/guess")).status == 404


async def test_the_audit_log_names_the_accepting_person_but_not_the_link(cloud: MemoryCloud, person: Browser) -> None:
    path = await invited(cloud, person)
    await post(browser(cloud), path)
    entries = await cloud.cloud.store.read(lambda sql: audit.entries(sql, cloud.first.organization, AuditQuery()))
    assert entries[0].action == "accept_invitation"
    assert (entries[0].author.type, entries[0].author.name) == ("person", ADA)
    assert path.rpartition("/")[2] not in repr(entries)
    page = (await person.get("/audit")).text
    assert "accept invitation" in page
    assert path.rpartition("/")[2] not in page


async def test_links_are_renewed_withdrawn_and_members_removed(cloud: MemoryCloud, person: Browser) -> None:
    form = {"organization": cloud.first.organization, "email": ADA}
    first = await invited(cloud, person)
    second = link((await post(person, "/members/link", **form)).text)
    assert (await browser(cloud).get(first)).status == 404
    accepted = await post(browser(cloud), second)
    her = await signed_in(cloud, shown(accepted.text))
    third = await invited(cloud, person, email="bob@example.com")
    withdrawn = await post(person, "/members/withdraw", organization=form["organization"], email="bob@example.com")
    assert withdrawn.status == 303
    assert (await browser(cloud).get(third)).status == 404
    user = await cloud.app("get_user_id_by_email", email=ADA)
    assert (await post(person, "/members/remove", organization=form["organization"], member=user)).status == 303
    assert (await her.get("/keys")).status in (303, 401)
    assert await listed(cloud) == ([], [])


async def test_errors_are_shown_on_the_page(cloud: MemoryCloud, person: Browser) -> None:
    await invited(cloud, person)
    organization = cloud.first.organization
    again = await post(
        person, "/members", organization=organization, email=ADA, role="owner", place=f"organization/{organization}"
    )
    assert again.status == 409
    assert f"{ADA} is already invited" in again.text.replace("Ada@", "ada@")
    nowhere = await post(person, "/members", organization=organization, email="b@example.com", role="owner", place="")
    assert "No place was chosen" in nowhere.text
    unknown = await post(person, "/members/promote", organization=organization)
    assert unknown.status == 404


async def test_only_owners_see_and_invite_members(cloud: MemoryCloud, machine: str) -> None:
    await invite(cloud, "seen@example.com")
    place = f"robot/{machine}"
    await invite(cloud, ADA, role("organization", "operator", cloud.first.organization))
    her = await signed_in(cloud, shown((await post(browser(cloud), f"/invites/{await secret(cloud)}")).text))
    page = await her.get("/keys")
    assert page.status == 403
    assert "seen@example.com" not in page.text
    organization = cloud.first.organization
    for path, form in (
        ("/members", {"email": "x@example.com", "role": "operator", "place": place}),
        ("/members/link", {"email": "seen@example.com"}),
        ("/members/withdraw", {"email": "seen@example.com"}),
        ("/members/remove", {"member": ADA}),
    ):
        reply = await post(her, path, organization=organization, **form)
        assert reply.status in (403, 404), path
        assert "/invites/" not in reply.text
    assert await listed(cloud) == ([ADA], ["seen@example.com"])


async def test_with_a_mail_server_the_link_is_shown_only_on_request(cloud: MemoryCloud) -> None:
    mailing = MemoryCloud(replace(cloud.cloud, mails=True), cloud.first)
    person = await signed_in(mailing)
    organization = cloud.first.organization
    form = {"organization": organization, "email": ADA, "role": "owner", "place": f"organization/{organization}"}
    assert (await post(person, "/members", **form)).status == 303
    page = (await person.get("/keys")).text
    assert "being mailed" in page
    assert "Send again" in page
    assert (await post(person, "/members/resend", organization=organization, email=ADA)).status == 303
    assert (await post(person, "/members/link", organization=organization, email=ADA)).status == 200
    assert "being mailed" not in (await person.get("/keys")).text
