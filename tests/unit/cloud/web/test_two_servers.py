"""A cloud and a machine on one host: a browser sends both cookies to each, because cookies ignore ports."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from cloud.server.memory import MemoryCloud, open_cloud
from rpc.access.auth import Authenticator, Credential
from rpc.access.credential_types import API_KEY
from rpc.access.login import cookie_name
from rpc.carrier import Peer
from runtime.server.memory import open_machine
from tests.unit.cloud.pages import browser, post
from tests.unit.runtime.parts.web.client import HTML, Browser

KEYS = {"auth": {"handlers": [{"type": "api-key", "config": {"id": "key"}}]}}


@pytest.fixture
async def cloud() -> AsyncIterator[MemoryCloud]:
    async with open_cloud() as created:
        yield created


async def page(created: Browser) -> int:
    return (await created.get("/", HTML)).status


async def test_logging_in_to_one_program_does_not_log_out_of_another(cloud: MemoryCloud) -> None:
    async with open_machine(KEYS) as machine:
        of_cloud = browser(cloud)
        of_machine = Browser(machine.serving.pages(loopback=True), host=of_cloud.host)
        of_machine.cookies = of_cloud.cookies  # one host, so one cookie jar
        assert (await post(of_cloud, "/login", id=cloud.first.id, key=cloud.first.key)).status == 303
        assert (await post(of_machine, "/login", id="id", key="key")).status == 303
        assert [await page(of_cloud), await page(of_machine)] == [200, 200]
        assert (await post(of_machine, "/logout")).status == 303
        assert [await page(of_cloud), await page(of_machine)] == [200, 303]


async def test_machines_on_one_host_have_separate_cookies() -> None:
    async with open_machine(KEYS) as first, open_machine(KEYS) as same:
        names = {each.serving.gate.authenticator.instance for each in (first, same)}
        assert len(names) == 1, "the same machine after a restart"
        assert all(len(name) >= 16 for name in names)


async def test_a_session_cookie_is_not_a_token_for_programs(cloud: MemoryCloud) -> None:
    """A cookie that another server on the host received does not authorize calls, nor anything at other servers."""
    authenticator = cloud.cloud.authenticator
    person = browser(cloud)
    await post(person, "/login", id=cloud.first.id, key=cloud.first.key)
    ((name, token),) = person.cookies.items()
    assert name == cookie_name(authenticator.instance, secure=False)
    with pytest.raises(GRPCError) as caught:
        authenticator.authorize("/viam.app.v1.AppService/ListOrganizations", {"authorization": f"Bearer {token}"})
    assert caught.value.status is Status.UNAUTHENTICATED
    person.cookies.clear()
    assert (await person.get("/", {**HTML, "authorization": f"Bearer {token}"})).status == 303
    person.cookies["machine_token"] = person.cookies[cookie_name("other", secure=False)] = token
    assert await page(person) == 303
    person.cookies[name] = token
    assert await page(person) == 200
    program = await authenticator.sign_in(cloud.first.id, API_KEY, cloud.first.key, peer=Peer())
    assert authenticator.authorize("/viam.app.v1.AppService/X", {"authorization": f"Bearer {program}"})


def test_names_over_tls_are_bound_to_the_host() -> None:
    assert cookie_name("abc", secure=True) == "__Host-machine_token_abc"
    gate = Authenticator(credentials=[Credential(API_KEY, "id", "key")])
    assert cookie_name(gate.instance, secure=False) == "machine_token"
