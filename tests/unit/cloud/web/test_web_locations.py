"""The locations page: shares and secrets."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from cloud.domain.organizations.first import FirstKey, create_owner
from cloud.server.memory import MemoryCloud
from tests.unit.cloud.pages import post, signed_in
from tests.unit.runtime.parts.web.client import Browser

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def person(cloud: MemoryCloud) -> Browser:
    return await signed_in(cloud)


@pytest.fixture
async def guest(cloud: MemoryCloud) -> FirstKey:
    return await cloud.cloud.store.write(lambda sql: create_owner(sql, "Guest", NOW))


async def test_a_location_is_shared_and_unshared(cloud: MemoryCloud, person: Browser, guest: FirstKey) -> None:
    place = cloud.first.location
    theirs = await signed_in(cloud, (guest.id, guest.key))
    assert guest.organization in (await theirs.get("/locations")).text  # the id that the sharing organization needs
    assert place not in (await theirs.get("/locations")).text
    assert (await post(person, f"/locations/{place}/share", organization=guest.organization)).status == 303
    assert "its keys have their roles here" in (await person.get("/locations")).text
    shown = (await theirs.get("/locations")).text
    assert place in shown
    assert f"/locations/{place}/unshare" not in shown  # only the owning organization may unshare
    refused = await post(theirs, f"/locations/{place}/unshare", organization=guest.organization)
    assert refused.status == 403
    assert "belongs to another organization" in refused.text
    assert (await post(person, f"/locations/{place}/unshare", organization=guest.organization)).status == 303
    assert place not in (await theirs.get("/locations")).text


async def test_errors_are_shown_next_to_the_location(cloud: MemoryCloud, person: Browser) -> None:
    place = cloud.first.location
    reply = await post(person, f"/locations/{place}/share", organization="nobody")
    assert reply.status == 404
    assert "There is no organization" in reply.text
    own = await post(person, f"/locations/{place}/share", organization=cloud.first.organization)
    assert own.status == 409
    assert (await post(person, f"/locations/{place}/burn")).status == 404


async def test_a_secret_is_shown_when_created_and_can_be_deleted(cloud: MemoryCloud, person: Browser) -> None:
    place = cloud.first.location
    reply = await post(person, f"/locations/{place}/add-secret")
    (secret,) = re.findall(r'<pre[^>]* aria-label="Secret">([^<]+)</pre>', reply.text)
    auth = await cloud.app("location_auth", location_id=place)
    assert auth["secret"] == secret
    page = (await person.get("/locations")).text
    assert auth["secrets"][0]["id"] in page
    assert secret not in page
    form = {"secret": auth["secrets"][0]["id"]}
    assert (await post(person, f"/locations/{place}/delete-secret", **form)).status == 303
    assert (await cloud.app("location_auth", location_id=place))["secrets"] == []
