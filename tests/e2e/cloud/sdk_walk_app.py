"""A walk through AppClient of the official Python SDK: each method, and its answer."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from grpclib import Status
from viam.app.app_client import AppClient, Fragment
from viam.gen.app.v1 import app_pb2 as pb
from viam.gen.app.v1 import robot_pb2
from viam.gen.app.v1.robot_grpc import RobotServiceStub
from viam.proto.common import LogEntry
from viam.utils import datetime_to_timestamp

from tests.e2e.cloud.sdk_others import ANNA
from tests.e2e.cloud.sdk_seen import Seen, left_open

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
UNUSED_ID: Final = "00000000-0000-4000-8000-000000000000"


@dataclass
class Place:
    """The objects that the walk uses."""

    organization: str
    location: str
    second: str  # id of an organization that the key does not belong to
    key: str  # id of the key that the walk logs in with
    folder: Path  # folder for files that the SDK writes


def motor(name: str, speed: float) -> dict[str, Any]:
    return {"name": name, "api": "rdk:component:motor", "model": "fake", "attributes": {"max_rpm": speed}}


async def organization(app: AppClient, seen: Seen, at: Place) -> None:
    (only,) = await app.list_organizations()
    seen("list_organizations", (only.id, only.name), (at.organization, "Home"))
    seen("get_organization", (await app.get_organization(at.organization)).created_on, only.created_on)
    await seen.refused(app.get_organization(UNUSED_ID), Status.NOT_FOUND)
    free = await app.get_organization_namespace_availability("acme")
    request = pb.UpdateOrganizationNamespaceRequest(organization_id=at.organization, new_public_namespace="acme")
    space = (await app._app_client.UpdateOrganizationNamespace(request, metadata=app._metadata)).organization
    assert space.public_namespace == "acme"
    named = await app.update_organization(at.organization, "House", "acme")
    seen("update_organization", (named.id, named.name, named.public_namespace), (at.organization, "House", "acme"))
    taken = await app.get_organization_namespace_availability("acme")
    seen("get_organization_namespace_availability", (free, taken), (True, False))
    facts = {"floors": 2.0, "rooms": ["hall", True]}
    await app.update_organization_metadata(at.organization, facts)
    seen("update_organization_metadata", await app.get_organization_metadata(at.organization), facts)
    await app.update_organization_metadata(at.organization, {})
    seen("get_organization_metadata", await app.get_organization_metadata(at.organization), {})


async def people(app: AppClient, seen: Seen, at: Place) -> None:
    """Test the members and invitations: Anna of sdk_others is a member; Ben is invited."""
    here = at.organization
    (anna,), none = await app.list_organization_members(here)
    assert (list(anna.emails), list(none)) == ([ANNA], [])
    user = await app.get_user_id_by_email(ANNA)
    seen("get_user_id_by_email", user, anna.user_id)
    seen(
        "list_organizations_by_user",
        [listed.org_name for listed in await app.list_organizations_by_user(user)],
        ["House"],
    )
    stub, headers = app._app_client, {"metadata": app._metadata}
    search = await stub.SearchOrganizations(pb.SearchOrganizationsRequest(org_name="hous"), **headers)
    assert [match.org_id for match in search.organizations] == [here]
    ben = "ben@example.com"
    role = {"authorization_type": "role", "organization_id": here}
    guard = pb.Authorization(
        **role, authorization_id="organization_operator", resource_type="organization", resource_id=here
    )
    invite = await app.create_organization_invite(here, ben, [guard], send_email_invite=False)
    seen(
        "create_organization_invite",
        (invite.email, [grant.authorization_id for grant in invite.authorizations]),
        (ben, ["organization_operator"]),
    )
    owner = pb.Authorization(
        **role, authorization_id="location_owner", resource_type="location", resource_id=at.location
    )
    changed = await app.update_organization_invite_authorizations(here, ben, [owner], [guard])
    roles = [grant.authorization_id for grant in changed.authorizations]
    seen("update_organization_invite_authorizations", roles, ["location_owner"])
    seen("resend_organization_invite", (await app.resend_organization_invite(here, ben)).email, ben)
    _, invited = await app.list_organization_members(here)
    seen("list_organization_members", [invitation.email for invitation in invited], [ben])
    await app.delete_organization_invite(here, ben)
    await app.delete_organization_member(here, user)
    left, waiting = await app.list_organization_members(here)
    seen("delete_organization_invite", list(waiting), [])
    seen("delete_organization_member", list(left), [])


async def sharing(app: AppClient, seen: Seen, at: Place, location: str) -> None:
    async def access() -> list[str]:
        return sorted(reader.name for reader in await app.get_organizations_with_access_to_location(location))

    seen("get_organizations_with_access_to_location", await access(), ["House"])
    await app.share_location(at.second, location)
    seen("share_location", await access(), ["House", "Second"])
    await app.unshare_location(at.second, location)
    seen("unshare_location", await access(), ["House"])
    before = await app.location_auth(location)
    created = await app.create_location_secret(location)
    (new,) = {secret.id for secret in created.secrets} - {secret.id for secret in before.secrets}
    both = await app.location_auth(location)
    seen("create_location_secret", (created.location_id, len(created.secrets)), (location, len(before.secrets) + 1))
    seen("location_auth", {secret.id for secret in both.secrets}, {secret.id for secret in created.secrets})
    await app.delete_location_secret(new, location)
    left = {secret.id for secret in (await app.location_auth(location)).secrets}
    seen("delete_location_secret", left, {secret.id for secret in before.secrets})


async def locations(app: AppClient, seen: Seen, at: Place) -> None:
    hall = await app.create_location(at.organization, "Hall", at.location)
    seen("create_location", (hall.name, hall.parent_location_id), ("Hall", at.location))
    moved = await app.update_location(hall.id, "Yard", "")
    seen("update_location", (moved.name, moved.parent_location_id), ("Yard", ""))
    got = await app.get_location(hall.id)
    owner = got.primary_org_identity
    seen("get_location", (got.name, got.robot_count, owner.id, owner.name), ("Yard", 0, at.organization, "House"))
    seen(
        "list_locations", sorted(listed.name for listed in await app.list_locations(at.organization)), ["Home", "Yard"]
    )
    await sharing(app, seen, at, hall.id)
    await app.update_location_metadata(hall.id, {"roof": True})
    metadata = await app.get_location_metadata(hall.id)
    seen("update_location_metadata", metadata, {"roof": True})
    seen("get_location_metadata", await app.get_location_metadata(at.location), {})
    await app.delete_location(hall.id)
    seen("delete_location", [listed.name for listed in await app.list_locations(at.organization)], ["Home"])
    await seen.refused(app.get_location(hall.id), Status.NOT_FOUND)


async def machines(app: AppClient, seen: Seen, at: Place) -> tuple[str, str]:
    """Test machines and parts; return the machine that remains, and its main part."""
    inner = await app.create_location(at.organization, "Inner", at.location)
    robot = await app.new_robot("rover", inner.id)
    seen("new_robot", [listed.id for listed in await app.list_robots(inner.id)], [robot])
    changed = await app.update_robot(robot, "tractor", at.location)
    seen("update_robot", (changed.id, changed.name, changed.location), (robot, "tractor", at.location))
    seen("list_robots", [listed.name for listed in await app.list_robots(at.location)], ["tractor"])
    second = await app.new_robot("digger", inner.id)
    both = await app.list_robots_for_locations([inner.id, at.location])
    seen("list_robots_for_locations", [listed.name for listed in both], ["digger", "tractor"])
    got = await app.get_robot(robot)
    waiting = pb.OnlineState.ONLINE_STATE_AWAITING_SETUP
    seen("get_robot", (got.name, got.online_state, got.HasField("last_access")), ("tractor", waiting, False))
    await app.add_favorite_machine(second)
    (favorite,) = await app.list_favorite_machines()
    seen("add_favorite_machine", (favorite.machine.name, favorite.organization_id), ("digger", at.organization))
    await app.add_favorite_machine(robot)
    seen(
        "list_favorite_machines", {listed.machine.id for listed in await app.list_favorite_machines()}, {robot, second}
    )
    await app.remove_favorite_machine(robot)
    seen("remove_favorite_machine", [listed.machine.id for listed in await app.list_favorite_machines()], [second])
    await app.delete_robot(second)
    seen("delete_robot", await app.list_robots(inner.id), [])
    await seen.refused(app.get_robot(second), Status.NOT_FOUND)
    await app.delete_location(inner.id)
    await app.update_robot_metadata(robot, {"color": "red"})
    seen("update_robot_metadata", await app.get_robot_metadata(robot), {"color": "red"})
    await app.update_robot_metadata(robot, {"n": 1})
    seen("get_robot_metadata", await app.get_robot_metadata(robot), {"n": 1.0})
    return robot, await parts(app, seen, at, robot)


async def parts(app: AppClient, seen: Seen, at: Place, robot: str) -> str:
    (main,) = await app.get_robot_parts(robot)
    assert (main.main_part, main.robot_config, main.location_id) == (True, {}, at.location)
    arm = await app.new_robot_part(robot, "arm")
    await app.mark_part_as_main(arm)
    names = [(listed.name, listed.main_part) for listed in await app.get_robot_parts(robot)]
    seen("mark_part_as_main", names, [("arm", True), (main.name, False)])
    await app.mark_part_as_main(main.id)
    seen("new_robot_part", (await app.get_robot_part(arm)).robot, robot)
    await app.update_robot_part_metadata(arm, {"reach": 0.5})
    seen("update_robot_part_metadata", await app.get_robot_part_metadata(arm), {"reach": 0.5})
    seen("get_robot_part_metadata", await app.get_robot_part_metadata(main.id), {})
    await app.delete_robot_part(arm)
    seen("delete_robot_part", [listed.id for listed in await app.get_robot_parts(robot)], [main.id])
    with_two = await app.create_robot_part_secret(main.id)
    assert with_two.secrets is not None
    seen("create_robot_part_secret", len({secret.secret for secret in with_two.secrets}), 2)
    await app.delete_robot_part_secret(main.id, with_two.secrets[0].id)
    (left,) = (await app.get_robot_part(main.id)).secrets or []
    seen("delete_robot_part_secret", left.id, with_two.secrets[1].id)
    (part,) = await app.get_robot_parts(robot)
    seen("get_robot_parts", (part.id, part.name, part.secret), (main.id, main.name, left.secret))
    stub = RobotServiceStub(app._channel)
    asked = robot_pb2.NeedsRestartRequest(id=main.id)
    assert (await stub.NeedsRestart(asked, metadata=app._metadata)).must_restart is False
    await app.mark_part_for_restart(main.id)
    seen("mark_part_for_restart", (await stub.NeedsRestart(asked, metadata=app._metadata)).must_restart, True)
    return main.id


async def configuration(app: AppClient, seen: Seen, at: Place, part: str) -> None:
    first, second = {"components": [motor("wheel", 10)]}, {"components": [motor("wheel", 20)]}
    before = await app.get_robot_part(part)
    saved = await app.update_robot_part(part, "", first, before.last_updated)
    seen("update_robot_part", (saved.robot_config, json.loads(saved.robot_config_json or "")), (first, first))
    await seen.refused(
        app.update_robot_part(part, "", second, before.last_updated),
        Status.FAILED_PRECONDITION,
        "changed in the meantime",
    )
    await app.update_robot_part(part, "", robot_config_json=json.dumps(second))
    written = at.folder / "part.json"
    with left_open():
        got = await app.get_robot_part(part, dest=str(written))
    seen("get_robot_part", (got.robot_config, json.loads(written.read_text())), (second, second))
    done = await app.set_config_property(part, {"components.wheel.attributes.max_rpm": 30})
    assert [(result.success, result.error) for result in done] == [(True, "")]
    wrong = await app.set_config_property(part, {"components.wheel.attributes.max_rpm": 40, "components.none.x": 1})
    assert [result.success for result in wrong] == [False, False]
    third = {"components": [motor("wheel", 30)]}
    seen("set_config_property", (await app.get_robot_part(part)).robot_config, third)
    history = await app.get_robot_part_history(part)
    seen("get_robot_part_history", [entry.old and entry.old.robot_config for entry in history], [second, first, {}])
    (newest,) = await app.get_robot_part_history(part, page_limit=1)
    assert newest.when == history[0].when
    older = await app.get_robot_part_history(part, end=history[1].when and history[1].when.replace(tzinfo=UTC))
    assert history[0].when not in [entry.when for entry in older]
    assert await app.get_robot_part_history(part, start=datetime.now(UTC) + timedelta(hours=1)) == []
    tokens = await _pages_of_history(app, part)
    assert tokens == [2, 1]
    assert history[1].old is not None
    reverted = await app.update_robot_part(part, "", history[1].old.robot_config)
    assert reverted.robot_config == first
    assert len(await app.get_robot_part_history(part)) == 4


async def _pages_of_history(app: AppClient, part: str) -> list[int]:
    """Return the sizes of the pages of a history, by the stub: the SDK's method returns no page token."""
    sizes, token = [], ""
    while True:
        request = pb.GetRobotPartHistoryRequest(id=part, page_limit=2, page_token=token)
        page = await app._app_client.GetRobotPartHistory(request, metadata=app._metadata)
        assert all(entry.edited_by.type == pb.AUTHENTICATION_TYPE_API_KEY for entry in page.history)
        sizes.append(len(page.history))
        token = page.next_page_token
        if not token:
            return sizes


def entry(number: int, level: str = "info", message: str = "") -> LogEntry:
    time = datetime_to_timestamp(START + timedelta(milliseconds=number))
    return LogEntry(host="pi", level=level, time=time, logger_name="rdk", message=message or f"m{number}")


async def logs(app: AppClient, seen: Seen, at: Place, part: str) -> None:
    stub = RobotServiceStub(app._channel)

    async def send(*entries: LogEntry) -> None:
        await stub.Log(robot_pb2.LogRequest(id=part, logs=entries), metadata=app._metadata)

    await send(*[entry(number, "warn" if number % 50 == 0 else "info") for number in range(250)])
    written = at.folder / "log.txt"
    with left_open():
        received = await app.get_robot_part_logs(part, num_log_entries=250, dest=str(written))
    seen(
        "get_robot_part_logs", [logged.message for logged in received], [f"m{number}" for number in range(249, -1, -1)]
    )
    assert [line.split()[-1] for line in written.read_text().splitlines()] == [logged.message for logged in received]
    assert len(await app.get_robot_part_logs(part, filter="m24", num_log_entries=100)) == 11
    warned = await app.get_robot_part_logs(part, log_levels=["warn"])
    assert [logged.message for logged in warned] == ["m200", "m150", "m100", "m50", "m0"]
    times = {"start": START + timedelta(milliseconds=10), "end": START + timedelta(milliseconds=13)}
    between = await app.get_robot_part_logs(part, order=pb.LOG_ORDER_ASCENDING, **times)
    assert [logged.message for logged in between] == ["m10", "m11", "m12"]

    async def talk() -> None:  # a follower receives only entries that are logged after it starts
        for number in range(1000, 10_000):
            await send(entry(number), entry(number, "error", "loud"), entry(number, "error", "louder still"))
            await asyncio.sleep(0.05)

    talking = asyncio.create_task(talk())
    stream = await app.tail_robot_part_logs(part, errors_only=True, filter="still")
    batch = await anext(aiter(stream))
    talking.cancel()
    seen("tail_robot_part_logs", {(logged.level, logged.message) for logged in batch}, {("error", "louder still")})


async def fragments(app: AppClient, seen: Seen, at: Place, robot: str, part: str) -> None:
    speed = {"$variable": {"name": "speed"}}
    first = {"components": [{**motor("wheel", 0), "attributes": {"max_rpm": speed}}]}
    created = await app.create_fragment(at.organization, "drive", first)
    seen("create_fragment", (created.fragment, created.visibility), (first, Fragment.Visibility.PRIVATE))
    second = {"components": [*first["components"], motor("spare", 5)]}
    changed = await app.update_fragment(created.id, "drives", second, last_known_update=created.last_updated)
    seen("update_fragment", (changed.name, changed.fragment), ("drives", second))
    late = app.update_fragment(created.id, "drives", first, last_known_update=created.last_updated)
    await seen.refused(late, Status.FAILED_PRECONDITION)
    (listed,) = await app.list_fragments(at.organization, show_public=False)
    seen("list_fragments", (listed.id, listed.name, listed.robot_part_count), (created.id, "drives", 0))
    assert await app.list_fragments(at.organization, visibilities=[Fragment.Visibility.PUBLIC]) == []
    older = await app.get_fragment(created.id, version="1")
    seen("get_fragment", (older.fragment, (await app.get_fragment(created.id)).fragment), (first, second))
    newest, *_ = await app.get_fragment_history(created.id)
    seen("get_fragment_history", (newest.fragment, newest.old.fragment), (created.id, first))
    await _tags_and_uses(app, at, robot, part, created.id)
    await seen.refused(app.delete_fragment(created.id), Status.FAILED_PRECONDITION)  # the machine uses it
    await app.update_robot_part(part, "", robot_config_json="{}")
    await app.delete_fragment(created.id)
    seen("delete_fragment", await app.list_fragments(at.organization), [])


async def _tags_and_uses(app: AppClient, at: Place, robot: str, part: str, fragment: str) -> None:
    """Test calls that the SDK has no methods for, by its stub."""
    stub, headers = app._app_client, {"metadata": app._metadata}
    tagged = await stub.SetFragmentTag(
        pb.SetFragmentTagRequest(fragment_id=fragment, tag="stable", revision="2"), **headers
    )
    assert [(tag.tag, tag.revision) for tag in tagged.tags] == [("stable", "2")]
    use = {"id": fragment, "version": "stable", "prefix": "left", "variables": {"speed": 7}}
    await app.update_robot_part(part, "", {"fragments": [use]})
    usage = await stub.GetFragmentUsage(pb.GetFragmentUsageRequest(fragment_id=fragment), **headers)
    assert [(use.version, use.machines) for use in usage.version_usages] == [("2", 1)]
    nested = await stub.ListNestedFragments(pb.ListNestedFragmentsRequest(fragment_id=fragment), **headers)
    assert [used.id for used in nested.fragments] == [fragment]
    used = await stub.ListMachineFragments(pb.ListMachineFragmentsRequest(machine_id=robot), **headers)
    resolved = used.resolved_fragments[0].resolved_config if used.resolved_fragments else None
    assert "left-wheel" in str(resolved), used
    robots = RobotServiceStub(app._channel)
    config = (await robots.Config(robot_pb2.ConfigRequest(id=part), **headers)).config
    speeds = [(component.name, component.attributes["max_rpm"]) for component in config.components]
    assert speeds == [("left-wheel", 7.0), ("left-spare", 5.0)]
    forgotten = await stub.SetFragmentTag(
        pb.SetFragmentTagRequest(fragment_id=fragment, tag="old", revision="1"), **headers
    )
    assert [tag.tag for tag in forgotten.tags] == ["old", "stable"]
    left = await stub.DeleteFragmentTag(pb.DeleteFragmentTagRequest(fragment_id=fragment, tag="old"), **headers)
    assert [tag.tag for tag in left.tags] == ["stable"]


async def overview(app: AppClient, at: Place, robot: str, part: str) -> None:
    """Test further calls that the SDK has no methods for."""
    stub, headers = app._app_client, {"metadata": app._metadata}
    every = await stub.ListRobotsForOrg(pb.ListRobotsForOrgRequest(org_id=at.organization), **headers)
    assert [machine.name for machine in every.robots] == ["tractor"]
    name = (await app.get_robot_part(part)).name
    asked = pb.GetRobotPartByNameAndLocationRequest(name=name, location_id=at.location)
    assert (await stub.GetRobotPartByNameAndLocation(asked, **headers)).part.id == part
    fleet = await stub.ListMachineSummaries(pb.ListMachineSummariesRequest(organization_id=at.organization), **headers)
    ((where, machines_there),) = [(place.location_id, place.machine_summaries) for place in fleet.location_summaries]
    assert (where, [machine.machine_id for machine in machines_there]) == (at.location, [robot])
    (summary,) = machines_there[0].part_summaries
    assert (summary.part_id, summary.is_main_part) == (part, True)
    assert summary.online_state == pb.ONLINE_STATE_ONLINE  # it has requested its configuration and logged
