"""Members: invited, with keys of their own, and removed at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.domain.organizations.first import create_owner
from cloud.domain.people import invites, people
from cloud.domain.people.people import checked_email
from cloud.domain.permissions import audit
from cloud.domain.permissions.audit import AuditQuery
from cloud.server.memory import APP, MemoryCloud
from cloud.services.organizations.people import Invitations
from cloud.store.moving import tables
from cloud.values.author import KEY, Author
from rpc.access.auth import digest_of
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.conftest import Clock

ADA = "ada@example.com"


def role(kind: str, word: str, subject: str) -> dict[str, str]:
    return {
        "authorization_type": "role",
        "authorization_id": f"{kind}_{word}",
        "resource_type": kind,
        "resource_id": subject,
    }


async def invite(cloud: MemoryCloud, email: str = ADA, *roles: dict[str, str], key: str = "") -> dict[str, Any]:
    created: dict[str, Any] = await cloud.client(key).call(
        APP,
        "",
        "create_organization_invite",
        organization_id=cloud.first.organization,
        email=email,
        authorizations=list(roles),
    )
    return created


async def secret(cloud: MemoryCloud, email: str = ADA) -> str:
    """Return the secret of a new invitation link."""
    service = Invitations(cloud.cloud, Author(KEY, cloud.first.id))
    return (await service.create_invite_link(cloud.first.organization, email)).rpartition("/")[2]


async def accept(cloud: MemoryCloud, link: str) -> tuple[str, str]:
    """Return the id of the key, and the key."""
    now = cloud.cloud.clock()
    return (await cloud.cloud.store.write(lambda sql: invites.accept(sql, link, now)))[1:]


async def member(cloud: MemoryCloud, email: str = ADA, *roles: dict[str, str]) -> str:
    """Create a member who has accepted an invitation, and return the id of the key."""
    await invite(cloud, email, *roles)
    return (await accept(cloud, await secret(cloud, email)))[0]


async def listed(cloud: MemoryCloud) -> tuple[list[str], list[str]]:
    answer = await cloud.app("list_organization_members", organization_id=cloud.first.organization)
    return [item["emails"][0] for item in answer["members"]], [element["email"] for element in answer["invites"]]


async def kind_of(call: Any) -> ErrorKind | None:
    try:
        await call
    except MachineError as error:
        return error.kind
    return None


async def test_an_invitation_becomes_a_member_with_a_key_of_exactly_the_invited_roles(
    cloud: MemoryCloud, machine: str
) -> None:
    created = await invite(cloud, " Ada@Example.com ", role("robot", "operator", machine))
    assert created["email"] == ADA
    assert [authorization["authorization_id"] for authorization in created["authorizations"]] == ["robot_operator"]
    assert await listed(cloud) == ([], [ADA])
    key, _ = await accept(cloud, await secret(cloud))
    assert await listed(cloud) == ([ADA], [])
    her = cloud.client(key)
    assert (await her.call(APP, "", "get_robot", id=machine))["name"] == "rover"
    assert await kind_of(her.call(APP, "", "delete_robot", id=machine)) is ErrorKind.PERMISSION
    assert await her.call(APP, "", "list_locations", organization_id=cloud.first.organization) == []
    (item,) = [
        element
        for element in await cloud.app("list_keys", org_id=cloud.first.organization)
        if element["api_key"]["id"] == key
    ]
    assert item["api_key"]["name"] == ADA


async def test_without_roles_an_invitation_is_for_an_owner(cloud: MemoryCloud) -> None:
    created = await invite(cloud)
    assert [authorization["authorization_id"] for authorization in created["authorizations"]] == ["organization_owner"]


async def test_only_the_newest_link_is_valid_once_and_for_a_week(cloud: MemoryCloud, clock: Clock) -> None:
    await invite(cloud)
    first, second = await secret(cloud), await secret(cloud)
    assert await kind_of(accept(cloud, first)) is ErrorKind.NOT_FOUND
    clock.now += timedelta(days=6, hours=23)
    await accept(cloud, second)
    assert await kind_of(accept(cloud, second)) is ErrorKind.NOT_FOUND
    await invite(cloud, "bob@example.com")
    late = await secret(cloud, "bob@example.com")
    clock.now += timedelta(days=7)
    assert await kind_of(accept(cloud, late)) is ErrorKind.NOT_FOUND
    assert await listed(cloud) == ([ADA], [])
    assert await cloud.cloud.store.write(lambda sql: invites.expire(sql, clock())) == 1


async def test_resending_invalidates_the_old_link_and_restarts_the_week(cloud: MemoryCloud, clock: Clock) -> None:
    await invite(cloud)
    link = await secret(cloud)
    clock.now += timedelta(days=5)
    await cloud.app("resend_organization_invite", organization_id=cloud.first.organization, email=ADA)
    assert await kind_of(accept(cloud, link)) is ErrorKind.NOT_FOUND
    clock.now += timedelta(days=5)
    assert await listed(cloud) == ([], [ADA])


async def test_a_withdrawn_invitation_is_invalid(cloud: MemoryCloud) -> None:
    await invite(cloud)
    link = await secret(cloud)
    await cloud.app("delete_organization_invite", organization_id=cloud.first.organization, email=ADA)
    assert await kind_of(accept(cloud, link)) is ErrorKind.NOT_FOUND
    assert await listed(cloud) == ([], [])
    gone = cloud.app("delete_organization_invite", organization_id=cloud.first.organization, email=ADA)
    assert await kind_of(gone) is ErrorKind.NOT_FOUND


async def test_the_roles_of_an_invitation_can_change_until_it_is_accepted(cloud: MemoryCloud, machine: str) -> None:
    place = cloud.first.location
    await invite(cloud, ADA, role("robot", "operator", machine))
    link = await secret(cloud)

    async def change(**fields: Any) -> list[str]:
        created = await cloud.app(
            "update_organization_invite_authorizations",
            organization_id=cloud.first.organization,
            email=ADA,
            **fields,
        )
        return [authorization["authorization_id"] for authorization in created["authorizations"]]

    assert await change(add_authorizations=[role("location", "operator", place)]) == [
        "location_operator",
        "robot_operator",
    ]
    assert await change(add_authorizations=[role("location", "owner", place)]) == ["location_owner", "robot_operator"]
    assert await change(remove_authorizations=[role("robot", "operator", machine)]) == ["location_owner"]
    last = change(remove_authorizations=[role("location", "owner", place)])
    assert await kind_of(last) is ErrorKind.INVALID
    absent = change(remove_authorizations=[role("location", "operator", place)])
    assert await kind_of(absent) is ErrorKind.NOT_FOUND
    key, _ = await accept(cloud, link)
    await cloud.client(key).call(APP, "", "new_robot", name="hers", location=place)


async def test_an_invitation_cannot_grant_more_than_the_inviter_has(
    cloud: MemoryCloud, machine: str, clock: Clock
) -> None:
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", clock()))
    theirs = role("location", "operator", other.location)
    assert await kind_of(invite(cloud, ADA, theirs)) is ErrorKind.NOT_FOUND
    place = cloud.first.location
    owner = await member(cloud, "lo@example.com", role("location", "owner", place))
    operator = await member(cloud, "oo@example.com", role("organization", "operator", cloud.first.organization))
    assert await kind_of(invite(cloud, ADA, role("location", "operator", place), key=owner)) is ErrorKind.NOT_FOUND
    assert await kind_of(invite(cloud, ADA, role("robot", "operator", machine), key=operator)) is ErrorKind.PERMISSION
    assert await kind_of(invite(cloud, ADA, theirs, key=other.id)) is ErrorKind.NOT_FOUND
    assert await listed(cloud) == (["lo@example.com", "oo@example.com"], [])


async def test_a_second_invitation_is_refused(cloud: MemoryCloud) -> None:
    await invite(cloud)
    assert await kind_of(invite(cloud)) is ErrorKind.EXISTS
    await accept(cloud, await secret(cloud))
    assert await kind_of(invite(cloud)) is ErrorKind.EXISTS
    assert await kind_of(invite(cloud, "no address")) is ErrorKind.INVALID


async def test_the_number_of_open_invitations_is_limited(cloud: MemoryCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invites, "MAX_OPEN", 2)
    await invite(cloud, "a@example.com")
    await invite(cloud, "b@example.com")
    assert await kind_of(invite(cloud, "c@example.com")) is ErrorKind.EXHAUSTED


async def test_keys_of_a_removed_member_are_invalid_immediately(cloud: MemoryCloud) -> None:
    organization = cloud.first.organization
    key = await member(cloud, ADA)
    her = cloud.client(key)
    copy = (await her.call(APP, "", "create_key_from_existing_key_authorizations", id=key))["id"]
    other = (
        await her.call(
            APP, "", "create_key", name="ci", authorizations=[role("organization", "operator", organization)]
        )
    )["id"]
    user = await cloud.app("get_user_id_by_email", email="ADA@example.com")
    await cloud.app("delete_organization_member", organization_id=organization, user_id=user)
    left = [item["api_key"]["id"] for item in await cloud.app("list_keys", org_id=organization)]
    assert sorted(left) == sorted([cloud.first.id, other])
    for void in (key, copy):
        assert await cloud.client(void).call(APP, "", "list_organizations") == []
    assert await listed(cloud) == ([], [])
    rows = await cloud.cloud.store.read(lambda sql: sql.rows("SELECT id FROM people"))
    assert rows == []


async def test_the_last_owner_cannot_be_removed(cloud: MemoryCloud) -> None:
    key = await member(cloud, ADA)
    her = cloud.client(key)
    await her.call(APP, "", "delete_key", id=cloud.first.id)
    organization = cloud.first.organization
    user = await her.call(APP, "", "get_user_id_by_email", email=ADA)
    gone = her.call(APP, "", "delete_organization_member", organization_id=organization, user_id=user)
    assert await kind_of(gone) is ErrorKind.PRECONDITION
    assert (await her.call(APP, "", "list_organizations"))[0]["id"] == organization


async def test_people_are_found_by_themselves_and_by_owners_of_their_organizations(
    cloud: MemoryCloud, machine: str, clock: Clock
) -> None:
    her = cloud.client(await member(cloud, ADA, role("robot", "operator", machine)))
    him = cloud.client(await member(cloud, "bob@example.com", role("robot", "operator", machine)))
    user = await cloud.app("get_user_id_by_email", email=ADA)
    assert await her.call(APP, "", "get_user_id_by_email", email=ADA) == user
    assert [item["org_name"] for item in await her.call(APP, "", "list_organizations_by_user", user_id=user)] == [
        "Test"
    ]
    assert await kind_of(him.call(APP, "", "get_user_id_by_email", email=ADA)) is ErrorKind.NOT_FOUND
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", clock()))
    theirs = cloud.client(other.id)
    assert await kind_of(theirs.call(APP, "", "get_user_id_by_email", email=ADA)) is ErrorKind.NOT_FOUND
    assert await kind_of(theirs.call(APP, "", "list_organizations_by_user", user_id=user)) is ErrorKind.NOT_FOUND
    for expected, result in (
        ({}, ["Test"]),
        ({"org_name": "tES"}, ["Test"]),
        ({"org_id": other.organization}, []),
        ({"org_name": "Other"}, []),
        ({"cid": "1"}, []),
        ({"public_namespace": "acme"}, []),
    ):
        assert [element["org_name"] for element in await cloud.app("search_organizations", **expected)] == result, (
            expected
        )


async def test_a_person_in_two_organizations_can_leave_one(cloud: MemoryCloud, clock: Clock) -> None:
    key = await member(cloud, ADA)
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", clock()))
    await cloud.client(other.id).call(
        APP, "", "create_organization_invite", organization_id=other.organization, email=ADA
    )
    service = Invitations(cloud.cloud, Author(KEY, other.id))
    link = (await service.create_invite_link(other.organization, ADA)).rpartition("/")[2]
    theirs, _ = await accept(cloud, link)
    user = await cloud.app("get_user_id_by_email", email=ADA)
    assert await cloud.client(theirs).call(APP, "", "get_user_id_by_email", email=ADA) == user
    await cloud.app("delete_organization_member", organization_id=cloud.first.organization, user_id=user)
    assert await cloud.client(key).call(APP, "", "list_organizations") == []
    assert [item["name"] for item in await cloud.client(theirs).call(APP, "", "list_organizations")] == ["Other"]


async def test_roles_at_deleted_resources_are_left_out(cloud: MemoryCloud, machine: str) -> None:
    await invite(cloud, ADA, role("robot", "owner", machine), role("location", "operator", cloud.first.location))
    await invite(cloud, "bob@example.com", role("robot", "owner", machine))
    hers, his = await secret(cloud), await secret(cloud, "bob@example.com")
    await cloud.app("delete_robot", id=machine)
    assert await kind_of(accept(cloud, his)) is ErrorKind.PRECONDITION
    key, _ = await accept(cloud, hers)
    answer = await cloud.app("list_authorizations", organization_id=cloud.first.organization)
    assert [item["authorization_id"] for item in answer if item["identity_id"] == key] == ["location_operator"]


async def test_only_digests_are_stored_and_links_are_not_disclosed(cloud: MemoryCloud) -> None:
    await invite(cloud)
    link = await secret(cloud)

    def work(sql: Any) -> str:
        names = [table.name for table in tables()]
        return repr([sql.rows(f"SELECT * FROM {table}") for table in names])

    everything = await cloud.cloud.store.read(work)
    assert link not in everything
    assert digest_of(link) in everything
    noted = await cloud.cloud.store.read(lambda sql: audit.entries(sql, cloud.first.organization, AuditQuery()))
    assert [item.action for item in noted] == ["create_invite_link", "create_organization_invite"]
    assert noted[1].detail["email"] == ADA


async def test_deleting_an_organization_deletes_its_members(cloud: MemoryCloud) -> None:
    await member(cloud, ADA)
    await invite(cloud, "bob@example.com")
    link = await secret(cloud, "bob@example.com")
    await cloud.app("delete_location", location_id=cloud.first.location)
    await cloud.app("delete_organization", organization_id=cloud.first.organization)
    for table in ("people", "invites", "invite_grants", "keys"):
        assert await cloud.cloud.store.read(lambda sql, t=table: sql.rows(f"SELECT * FROM {t}")) == [], table
    assert await kind_of(accept(cloud, link)) is ErrorKind.NOT_FOUND


@pytest.mark.parametrize("text", ["", "x", "a@", "@b", "a b@c", "a@b@c", "a@-b", "a@b..c", "a\n@b", "a@é.com"])
def test_invalid_addresses_are_refused(text: str) -> None:
    with pytest.raises(MachineError, match="is not a valid email address"):
        checked_email(text)


@given(st.emails())
def test_addresses_are_stored_unchanged_or_refused(text: str) -> None:
    try:
        result = checked_email(text)
    except MachineError:
        return
    assert result == text.lower()
    assert checked_email(result) == result
    assert result.isprintable()
    assert len(result) <= people.MAX_EMAIL
