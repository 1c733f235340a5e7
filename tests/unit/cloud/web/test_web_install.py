"""The page of an installation: the line, its state, the recipe for an image, and addresses that others cannot use."""

from __future__ import annotations

import base64
import html
from datetime import timedelta

import pytest
import trio

from cloud.domain.machines import install_codes
from cloud.server.memory import MemoryCloud
from cloud.services.agents.installation import InstallState
from cloud.values.times import now
from cloud.web.views.installing.reach import is_unreachable, reachable
from cloud.web.views.setup import stage_of
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.pages import HOST, post, signed_in
from tests.unit.cloud.release_help import opened, publish
from tests.unit.cloud.web.api.test_installation import redeem
from tests.unit.cloud.web.test_web_fleet import LIMIT, ORIGIN


def words(page: str) -> str:
    return page.partition('<p role="status">')[2].partition("</p>")[0]


async def test_a_new_machine_shows_everything_on_one_page(cloud: MemoryCloud) -> None:
    visitor = await signed_in(cloud)
    page = (await post(visitor, "/machines", name="rover", location=cloud.first.location)).text
    assert "rover was created" in page
    assert "install.sh) | sudo sh" in page
    assert "Waiting for a computer" in words(page)
    assert '<svg class="qr"' in page
    assert "Start machine-server yourself" in page
    recipe = page.partition("data:text/plain;base64,")[2].partition('"')[0]
    text = base64.b64decode(html.unescape(recipe)).decode()
    assert text.startswith("#cloud-config\nruncmd:")
    assert "MACHINE_API_KEY=" in text


async def test_the_state_is_the_same_after_a_reload(cloud: MemoryCloud, part: str, clock: Clock) -> None:
    visitor, path = await signed_in(cloud), f"/machines/{part}/install"
    assert "There is no line in force" in words((await visitor.get(path)).text)
    page = (await post(visitor, path)).text
    again = (await visitor.get(path)).text
    assert "Waiting for a computer" in words(again)
    assert "MACHINE_API_KEY" not in again
    subject = page.partition("MACHINE_API_KEY_ID=")[2].partition(" ")[0]
    value = page.partition("MACHINE_API_KEY=")[2].partition("&#34;")[0]
    assert (await redeem(cloud, subject, value)).status == 200
    assert "connected" in words((await visitor.get(path)).text)
    await post(visitor, path)
    clock.now += install_codes.LIFETIME + timedelta(seconds=1)
    assert "Get a new one" in words((await visitor.get(path)).text)


async def test_the_state_is_live(cloud: MemoryCloud, part: str) -> None:
    visitor, path = await signed_in(cloud), f"/machines/{part}/install"
    with trio.fail_after(LIMIT):
        async with visitor.live(f"/live{path}", ORIGIN) as page:
            assert "no line" in (await page.patch())["stage"]
            line = (await post(visitor, path)).text
            assert "waiting" in (await page.patch())["stage"]
            subject = line.partition("MACHINE_API_KEY_ID=")[2].partition(" ")[0]
            value = line.partition("MACHINE_API_KEY=")[2].partition("&#34;")[0]
            assert (await redeem(cloud, subject, value)).status == 200
            assert "connected" in (await page.patch())["stage"]


def test_a_machine_that_is_connected_runs() -> None:
    assert stage_of(InstallState(), connected=True).word == "running"
    assert stage_of(InstallState(now(), now(), expired=True), connected=False).word == "connected"


@pytest.mark.parametrize(
    ("asked", "base", "outward", "address", "warned"),
    [
        ("https://cloud.example", "http://127.0.0.1:8090", [], "https://cloud.example", False),
        ("http://192.168.1.5:8090", "http://0.0.0.0:8090", ["10.0.0.7"], "http://192.168.1.5:8090", False),
        ("http://localhost:8090", "https://cloud.example", ["10.0.0.7"], "https://cloud.example", False),
        ("http://localhost:8090", "http://0.0.0.0:8090", ["10.0.0.7"], "http://10.0.0.7:8090", False),
        ("https://[::1]:8090", "https://[::]:8090", ["fe80::1", "2001:db8::7"], "https://[2001:db8::7]:8090", False),
        ("http://169.254.3.4:8090", "http://0.0.0.0:8090", [], "http://169.254.3.4:8090", True),
        ("http://localhost:8090", "http://127.0.0.1:8090", ["10.0.0.7"], "http://localhost:8090", True),
        ("http://127.0.0.1:8090", "http://localhost:8090", ["10.0.0.7"], "http://127.0.0.1:8090", True),
    ],
)
def test_addresses_that_others_cannot_use(
    asked: str, base: str, outward: list[str], address: str, warned: bool
) -> None:
    result, warning = reachable(asked, base, outward)
    assert (result, bool(warning)) == (address, warned)
    assert not warned or "--listen 0.0.0.0:8090 --tls" in warning


@pytest.mark.parametrize(
    "host", ["localhost", "a.localhost", "127.3.2.1", "::1", "fe80::1%eth0", "169.254.1.1", "0.0.0.0", "::"]
)
def test_local_hosts(host: str) -> None:
    assert is_unreachable(host)
    assert HOST.startswith("localhost")


async def test_the_page_says_that_there_is_nothing_to_install(cloud: MemoryCloud, part: str) -> None:
    visitor, path = await signed_in(cloud), f"/machines/{part}/install"
    assert "no release of machine-agent yet" in (await post(visitor, path)).text
    person = await opened(cloud)
    person.add("1.0.0", b"agent", ("stable",), "machine-agent")
    await publish(cloud, person)
    assert "no release of machine-agent yet" not in (await post(visitor, path)).text
