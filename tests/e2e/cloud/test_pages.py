"""The pages in a real browser, against machine-cloud and machine-server as processes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from rpc.api.client import ApiClient
from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.page import Page
from tests.e2e.browser.signing import sign_in
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.server.process import Server, server

pytestmark = needs_chromium
APP = "viam.app.v1.AppService"
LIMIT = 60.0
COMPONENTS = [
    {"name": "pi", "api": "rdk:component:board", "model": "fake"},
    {"name": "air", "api": "rdk:component:sensor", "model": "fake"},
    {"name": "left", "api": "rdk:component:motor", "model": "fake", "depends_on": ["pi"]},
    {"name": "broken", "api": "rdk:component:motor", "model": "nothing"},
]


class Site:
    """A cloud with one machine, and a browser."""

    def __init__(self, running: CloudProcess, client: ApiClient, page: Page, folder: Path) -> None:
        self.running = running
        self.client = client
        self.page = page
        self.folder = folder
        self.machine = ""
        self.part: dict[str, Any] = {}

    def url(self, path: str) -> str:
        return f"http://{self.running.address}{path}"

    async def call(self, method: str, **arguments: Any) -> Any:
        return await self.client.call(APP, "", method, **arguments)

    async def save(self, *components: dict[str, Any]) -> None:
        text = json.dumps({"components": components})
        await self.call("update_robot_part", id=self.part["id"], name="", robot_config_json=text)

    @asynccontextmanager
    async def server(self) -> AsyncIterator[Server]:
        self.folder.mkdir(exist_ok=True)
        credentials = {"id": self.part["id"], "secret": self.part["secret"], "app_address": self.url("")}
        async with server(self.folder, {"cloud": credentials}, "-disable-mdns") as running:
            yield running


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with cloud(tmp_path / "cloud") as running, running.client() as client, browser(tmp_path) as page:
        created = Site(running, client, page, tmp_path / "machine")
        created.machine = await created.call("new_robot", name="rover", location=running.facts["location"])
        created.part = (await created.call("get_robot_parts", robot_id=created.machine))[0]
        await sign_in(page, running)
        await page.until("document.readyState === 'complete'")  # no event of this page is mistaken for one of the next
        yield created


async def test_the_fleet_is_live_and_filtered_while_typing(site: Site) -> None:
    page = site.page
    await page.until_text("live", ".link")
    for name in ("drone", "greenhouse"):
        await site.call("new_robot", name=name, location=site.running.facts["location"])
        await page.until_text(name, "#machines")
    await page.fill("[name=q]", "gree")
    await page.until("document.querySelectorAll('#machines tbody tr').length === 1 && location.search === '?q=gree'")
    async with site.server():
        await page.until("document.querySelector('#counts [href$=online]')?.innerText === '1\\nonline'", limit=LIMIT)
        assert await page.count("#machines tr[data-state=online]") == 0
        await page.fill("[name=q]", "no such machine")
        assert "No machines match" in await page.until_text("No machines match", "#pager")
        await page.fill("[name=q]", "")
        await page.select("[name=state]", "online")
        rows = "document.querySelectorAll('#machines tbody tr')"
        await page.until(f"{rows}.length === 1 && {rows}[0].textContent.includes('rover')")
    await page.reload()  # the address contains the search
    assert await page.value("[name=state]") == "online"


async def test_a_new_machine_joins_with_its_credentials_file(site: Site) -> None:
    page = site.page
    await page.click("#new")
    await page.fill("form[action='/machines'] [name=name]", "lander")
    await page.click("form[action='/machines'] button")
    text = await page.until("document.querySelector('pre[aria-label=\"Credentials file\"]')?.textContent")
    site.part = json.loads(text)["cloud"]
    assert site.part["app_address"] == site.url("")
    async with site.server():
        await page.click(".crumbs a[href^='/machines/']")
        await page.until_text("online", "#head", limit=LIMIT)


async def test_the_page_of_a_machine_follows_its_changes(site: Site) -> None:
    page = site.page
    await site.save(*COMPONENTS)
    async with site.server() as running:
        await page.goto(site.url(f"/machines/{site.machine}"))
        await page.until_text("no model", "#resources", limit=LIMIT)
        await page.until("document.querySelectorAll('#graph rect.box').length === 4")
        assert await page.count("#graph path") == 1  # from the board to the motor
        await page.until("document.querySelectorAll('.sensor .readings tr').length === 3")
        await site.save(*COMPONENTS[:3], {"name": "right", "api": "rdk:component:motor", "model": "fake"})
        await page.until_text("right", "#resources")
        await page.until("!document.querySelector('#resources').textContent.includes('broken')")
        await site.save({"name": "air", "api": "rdk:component:sensor", "model": "fake"})
        await page.until("document.querySelectorAll('#graph rect.box').length === 1")
        await page.click("form[action$='/restart'] button")
        await page.until_text("Restart requested")
        with trio.fail_after(LIMIT):
            assert await running.process.wait() == 0


async def test_a_refused_configuration_is_shown_on_the_page(site: Site) -> None:
    page = site.page
    await site.save(*COMPONENTS[:1])
    async with site.server():
        await page.goto(site.url(f"/machines/{site.part['id']}"))
        await page.until_text("pi", "#resources", limit=LIMIT)
        text = json.dumps({"components": 5})
        await site.call("update_robot_part", id=site.part["id"], name="", robot_config_json=text)
        await page.until_text("The newest configuration was rejected", "#problems", limit=LIMIT)
        await page.goto(site.url("/"))
        await page.until_text("configuration rejected", "#machines", limit=LIMIT)


async def test_logs_are_live_and_filtered(site: Site) -> None:
    page = site.page
    await page.goto(site.url(f"/machines/{site.part['id']}/logs"))
    await page.until_text("No lines match yet", "#log")
    await site.save(*COMPONENTS)
    async with site.server():
        await page.until_text("connected to the cloud", "#log", limit=LIMIT)
        await page.until_text("no model", "#log", limit=LIMIT)
        await page.select("[name=level]", "error")
        await page.until("location.search.includes('level=error') && document.querySelector('#log .level-error')")
        assert set(await page.texts("#log .level")) == {"error"}


async def test_every_page_fits_a_phone_and_names_its_controls(site: Site) -> None:
    page = site.page
    await page.size(390, 844, phone=True)
    for path in ("/", f"/machines/{site.machine}", f"/machines/{site.part['id']}/logs", "/keys", "/audit"):
        await page.goto(site.url(path))
        assert await page.overflow() <= 0, path
        assert await page.unnamed() == [], path
        assert await page.count("main#main h1") == 1, path
        assert await page.count("[aria-current=page]") >= 1, path


async def test_without_scripts_pages_are_complete_but_not_live(site: Site) -> None:
    page = site.page
    await page.scripts(enabled=False)
    await page.goto(site.url("/?q=rov"))
    assert await page.count("#machines tbody tr") == 1
    await page.goto(site.url("/?q=nothing-like-it"))
    assert await page.count("#machines tbody tr") == 0
    await page.goto(site.url(f"/machines/{site.machine}"))
    assert "No machine-server has connected yet" in await page.text("#resources")
    await page.goto(site.url(f"/machines/{site.part['id']}/logs?level=warn"))
    assert await page.value("[name=level]") == "warn"


async def test_a_page_with_a_deleted_key_asks_for_a_login(site: Site) -> None:
    page = site.page
    page.expect("401|Authentication failed")
    grant = {"authorization_id": "robot_operator", "resource_type": "robot", "resource_id": site.machine}
    key = await site.call("create_key", authorizations=[grant], name="guard")
    await page.click(".sign-out button")
    await page.until_path("/login")
    await sign_in(page, site.running, (key["id"], key["key"]))
    await page.until_text("live", ".link")
    await site.call("delete_key", id=key["id"])
    await page.until_path("/login")


async def test_a_wrong_key_is_explained_and_logout_ends_the_session(site: Site) -> None:
    page = site.page
    page.expect("401|Authentication failed")
    await page.click(".sign-out button")
    await page.until_path("/login")
    await page.fill("[name=id]", site.running.key[0])
    await page.fill("[name=key]", "wrong")
    await page.click("form button")
    await page.until_text("credentials are wrong", "[role=alert]")
    await page.goto(site.url("/audit"))
    await page.until_path("/login")
