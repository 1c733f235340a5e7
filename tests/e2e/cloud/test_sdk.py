"""The unmodified official Python SDK against machine-cloud as a process."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trio
from grpclib import GRPCError, Status
from viam.app.app_client import APIKeyAuthorization, AppClient
from viam.app.viam_client import ViamClient
from viam.rpc.dial import DialOptions

from rpc.api.client import ApiClient
from rpc.client import Channel
from rpc.credentials import ApiKey
from tests.e2e.cloud.process import CloudProcess, cloud

ROBOT = "viam.app.v1.RobotService"
LIMIT = 60  # seconds for everything that one test asks of the SDK


@asynccontextmanager
async def signed_in(address: str, key: tuple[str, str]) -> AsyncIterator[AppClient]:
    options = DialOptions.with_api_key(key[1], key[0])
    options.insecure = True
    client = await ViamClient.create_from_dial_options(options, app_url=f"http://{address}")
    try:
        yield client.app_client
    finally:
        client.close()


async def with_sdk(
    running: CloudProcess, work: Callable[[AppClient], Awaitable[None]], key: tuple[str, str] | None = None
) -> None:
    """Do something on the SDK's own loop, in a thread."""

    async def main() -> None:
        async with asyncio.timeout(LIMIT), signed_in(running.address, key or running.key) as app:
            await work(app)

    await trio.to_thread.run_sync(lambda: asyncio.run(main()))


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[CloudProcess]:
    async with cloud(tmp_path) as process:
        yield process


async def test_organizations_locations_machines_and_parts(running: CloudProcess) -> None:
    async def work(app: AppClient) -> None:
        (organization,) = await app.list_organizations()
        assert (organization.id, organization.name) == (running.facts["organization"], "Home")
        (home,) = await app.list_locations(organization.id)
        hall = await app.create_location(organization.id, "Hall", parent_location_id=home.id)
        assert (await app.update_location(hall.id, name="Yard")).name == "Yard"
        robot = await app.new_robot("rover", hall.id)
        assert [one.name for one in await app.list_robots(hall.id)] == ["rover"]
        assert (await app.update_robot(robot, "tractor", home.id)).location == home.id
        part = await app.new_robot_part(robot, "arm")
        await app.mark_part_as_main(part)
        names = [(one.name, one.main_part) for one in await app.get_robot_parts(robot)]
        assert names == [("arm", True), ("rover-main", False)]
        await app.update_robot_metadata(robot, {"color": "red"})
        assert await app.get_robot_metadata(robot) == {"color": "red"}
        secrets = (await app.create_robot_part_secret(part)).secrets
        await app.delete_robot_part_secret(part, secrets[-1].id)
        with pytest.raises(GRPCError) as caught:
            await app.delete_robot_part(part)
        assert caught.value.status is Status.FAILED_PRECONDITION
        await app.delete_robot(robot)
        await app.delete_location(hall.id)
        with pytest.raises(GRPCError) as caught:
            await app.get_robot(robot)
        assert caught.value.status is Status.NOT_FOUND

    await with_sdk(running, work)


async def test_configuration_history_and_revert(running: CloudProcess) -> None:
    first = {"components": [{"name": "a", "api": "rdk:component:sensor", "model": "fake"}]}
    second = {"components": []}

    async def work(app: AppClient) -> None:
        robot = await app.new_robot("rover", running.facts["location"])
        (part,) = await app.get_robot_parts(robot)
        saved = await app.update_robot_part(part.id, part.name, first, last_known_update=part.last_updated)
        assert saved.robot_config == first
        with pytest.raises(GRPCError) as caught:
            await app.update_robot_part(part.id, part.name, second, last_known_update=part.last_updated)
        assert caught.value.status is Status.FAILED_PRECONDITION
        await app.update_robot_part(part.id, part.name, second, last_known_update=saved.last_updated)
        history = await app.get_robot_part_history(part.id)
        assert [one.old.robot_config for one in history] == [first, {}]
        await app.update_robot_part(part.id, part.name, history[0].old.robot_config)
        assert (await app.get_robot_part(part.id)).robot_config == first

    await with_sdk(running, work)


async def test_logs_of_a_machine_are_read_and_followed(running: CloudProcess) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)

    def entry(number: int, level: str = "info") -> dict[str, object]:
        time = start + timedelta(milliseconds=number)
        return {"host": "pi", "level": level, "time": time, "logger_name": "rdk", "message": f"m{number}"}

    async with running.client() as client:
        app = "viam.app.v1.AppService"
        robot = await client.call(app, "", "new_robot", name="rover", location=running.facts["location"])
        part = (await client.call(app, "", "get_robot_parts", robot_id=robot))[0]
    machine = ApiKey(part["id"], part["secret"], type="robot-secret")
    async with Channel(running.address, credentials=machine) as channel:
        calls = ApiClient(channel)
        await calls.call(ROBOT, "", "log", id=part["id"], logs=[entry(number) for number in range(250)])

        async def work(sdk: AppClient) -> None:
            found = await sdk.get_robot_part_logs(part["id"], num_log_entries=250)
            assert [one.message for one in found] == [f"m{number}" for number in range(249, -1, -1)]
            assert len(await sdk.get_robot_part_logs(part["id"], filter="m24", num_log_entries=100)) == 11
            assert await sdk.get_robot_part_logs(part["id"], log_levels=["error"]) == []

        await with_sdk(running, work)
        came = trio.Event()
        token = trio.lowlevel.current_trio_token()

        async def follow(sdk: AppClient) -> None:
            async for batch in await sdk.tail_robot_part_logs(part["id"], errors_only=True):
                assert {one.message for one in batch} == {"m999"}
                token.run_sync_soon(came.set)
                return

        async with trio.open_nursery() as nursery:
            nursery.start_soon(with_sdk, running, follow)
            with trio.fail_after(LIMIT):
                for number in itertools.count(1000):  # it hears only what comes after it listens
                    if came.is_set():
                        break
                    loud = {**entry(number, "error"), "message": "m999"}
                    await calls.call(ROBOT, "", "log", id=part["id"], logs=[entry(number), loud])
                    with trio.move_on_after(0.2):
                        await came.wait()


async def test_keys_with_roles_rotated_and_deleted_at_once(running: CloudProcess) -> None:
    made: list[tuple[str, str]] = []

    async def make(app: AppClient) -> None:
        grant = APIKeyAuthorization("operator", "organization", running.facts["organization"])
        key, key_id = await app.create_key(running.facts["organization"], [grant], "guard")
        made.append((key_id, key))
        names = {one.api_key.name for one in await app.list_keys(running.facts["organization"])}
        assert names == {"owner", "guard"}

    async def look(app: AppClient) -> None:
        assert len(await app.list_organizations()) == 1
        with pytest.raises(GRPCError) as caught:
            await app.new_robot("rover", running.facts["location"])
        assert caught.value.status is Status.PERMISSION_DENIED
        with pytest.raises(GRPCError) as caught:
            await app.list_keys(running.facts["organization"])
        assert caught.value.status is Status.PERMISSION_DENIED

    await with_sdk(running, make)
    await with_sdk(running, look, made[0])

    async def while_rotated(app: AppClient) -> None:
        await app.list_organizations()
        async with signed_in(running.address, running.key) as owner:
            key, key_id = await owner.rotate_key(made[0][0])
            made.append((key_id, key))
        with pytest.raises(GRPCError) as caught:
            await app.list_organizations()  # the token of the old key, on a connection that lives
        assert caught.value.status is Status.UNAUTHENTICATED

    await with_sdk(running, while_rotated, made[0])
    await with_sdk(running, look, made[1])

    async def while_deleted(app: AppClient) -> None:
        async with signed_in(running.address, running.key) as owner:
            await owner.delete_key(made[1][0])
        with pytest.raises(GRPCError) as caught:
            await app.list_organizations()
        assert caught.value.status is Status.UNAUTHENTICATED

    await with_sdk(running, while_deleted, made[1])


async def test_a_wrong_key_is_refused(running: CloudProcess) -> None:
    async def work(app: AppClient) -> None:
        raise AssertionError("signed in")

    with pytest.raises(GRPCError) as caught:
        await with_sdk(running, work, (running.key[0], "wrong"))
    assert caught.value.status is Status.UNAUTHENTICATED


async def test_what_is_not_built_is_said_to_be(running: CloudProcess) -> None:
    async def work(app: AppClient) -> None:
        with pytest.raises(GRPCError) as caught:
            await app.delete_organization_invite(running.facts["organization"], "a@example.com")
        assert caught.value.status is Status.UNIMPLEMENTED
        assert "create an API key" in str(caught.value.message)

    await with_sdk(running, work)
