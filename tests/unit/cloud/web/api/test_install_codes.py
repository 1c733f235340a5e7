"""The code in the line: it works once, for one computer, for a day, and attackers get nothing from it."""

from __future__ import annotations

from datetime import timedelta

import pytest
import trio

from cloud.domain.machines import install_codes
from cloud.domain.organizations.first import create_owner
from cloud.server.memory import MemoryCloud
from cloud.services.agents.agent_messages import InstallCode
from cloud.services.agents.agent_service import AgentService
from cloud.services.agents.installation import InstallationService
from cloud.values.author import KEY, Author
from rpc.access import ADDRESS_FAILURES
from schema import ErrorKind, MachineError
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.pages import HOST, browser
from tests.unit.cloud.web.api.test_installation import CONFIG, INSTALLER, actions, ask, basic, key_of, redeem


async def new_code(cloud: MemoryCloud, part: str, key: str = "") -> InstallCode:
    author = Author(KEY, key or cloud.first.id)
    return await AgentService(cloud.cloud, author).create_install_code(part)


async def refused(cloud: MemoryCloud, code: InstallCode, status: int, words: str, nonce: str = "1" * 32) -> None:
    reply = await redeem(cloud, code.id, code.key, nonce)
    assert (reply.status, words in reply.text) == (status, True), reply.text
    assert "secret" not in reply.text


async def test_it_works_once(cloud: MemoryCloud, part: str) -> None:
    code = await new_code(cloud, part)
    assert (await redeem(cloud, code.id, code.key, "0" * 32)).status == 200
    await refused(cloud, code, 409, "the line was used at ")
    entries = [entry for entry in await actions(cloud) if entry["action"] == "install_part"]
    assert [(entry["subject"], code.key in str(entry)) for entry in entries] == [(part, False)]


async def test_the_same_computer_may_repeat_a_lost_answer(cloud: MemoryCloud, part: str, clock: Clock) -> None:
    code = await new_code(cloud, part)
    first = await redeem(cloud, code.id, code.key, "0" * 32)
    clock.now += install_codes.REPEATED - timedelta(seconds=1)
    assert (await redeem(cloud, code.id, code.key, "0" * 32)).text == first.text
    clock.now += timedelta(seconds=1)
    await refused(cloud, code, 409, "works once", "0" * 32)
    assert len([entry for entry in await actions(cloud) if entry["action"] == "install_part"]) == 1


async def test_of_two_computers_at_the_same_moment_one_wins(cloud: MemoryCloud, part: str) -> None:
    code = await new_code(cloud, part)
    statuses = []

    async def computer(number: int) -> None:
        statuses.append((await redeem(cloud, code.id, code.key, f"{number:032x}")).status)

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(computer, number)
    assert sorted(statuses) == [200] + [409] * 7


async def test_it_expires_by_itself(cloud: MemoryCloud, part: str, clock: Clock) -> None:
    code = await new_code(cloud, part)
    assert abs(code.ends - clock() - timedelta(hours=24)) < timedelta(seconds=1)
    clock.now += install_codes.LIFETIME - timedelta(seconds=1)
    assert not await cloud.cloud.store.write(lambda sql: install_codes.expire(sql, clock()))
    clock.now += timedelta(seconds=1)
    await refused(cloud, code, 409, "the line expired at ")
    clock.now += install_codes.LIFETIME
    assert await cloud.cloud.store.write(lambda sql: install_codes.expire(sql, clock())) == 1
    await refused(cloud, code, 401, "is not valid")


async def test_a_new_line_replaces_the_former_one(cloud: MemoryCloud, part: str) -> None:
    first = await new_code(cloud, part)
    code = await new_code(cloud, part)
    await refused(cloud, first, 401, "is not valid")
    assert (await redeem(cloud, code.id, code.key)).status == 200


async def test_a_stolen_code_opens_nothing_else(cloud: MemoryCloud, part: str) -> None:
    code = await new_code(cloud, part)
    headers = basic(code.id, code.key)
    for path in (CONFIG.format(part=part), INSTALLER.format(part=part), "/keys", f"/machines/{part}"):
        assert (await ask(cloud, path, headers)).status == 401, path


async def test_it_is_void_when_its_author_is_no_longer_an_owner(cloud: MemoryCloud, part: str, machine: str) -> None:
    key, _ = await key_of(cloud, "owner", "robot", machine)
    code = await new_code(cloud, part, key)
    await cloud.app("delete_key", id=key)
    await refused(cloud, code, 409, "no longer an owner")
    state = await InstallationService(cloud.cloud, Author(KEY, cloud.first.id)).get_install_state(part)
    assert (state.used, state.expired) == (None, False)


async def test_it_is_void_with_its_machine(cloud: MemoryCloud, part: str, machine: str) -> None:
    code = await new_code(cloud, part)
    await cloud.app("delete_robot", id=machine)
    await refused(cloud, code, 401, "is not valid")


async def test_another_organization_gets_none(cloud: MemoryCloud, part: str) -> None:
    stranger = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Stranger", cloud.cloud.clock()))
    author = Author(KEY, stranger.id)
    for call in (
        AgentService(cloud.cloud, author).create_install_code(part),
        InstallationService(cloud.cloud, author).get_install_state(part),
    ):
        with pytest.raises(MachineError) as caught:
            await call
        assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_guesses_are_limited(cloud: MemoryCloud, part: str) -> None:
    code, visitor = await new_code(cloud, part), browser(cloud)

    async def guess(secret: str, nonce: str = "a" * 32) -> int:
        headers = {"host": HOST, **basic(code.id, secret)}
        return (await visitor.send("POST", f"/machine/v1/install?nonce={nonce}", headers)).status

    assert await guess(code.key, "short") == 400
    replies = [await guess(f"guess{number}") for number in range(ADDRESS_FAILURES + 2)]
    assert replies == [401] * ADDRESS_FAILURES + [429] * 2
    assert await guess(code.key) == 429
