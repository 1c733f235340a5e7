"""A configuration is edited in a real browser and applied by a real machine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.looking import faults
from tests.e2e.browser.page import Page
from tests.e2e.browser.signing import sign_in
from tests.e2e.browser.writing import CONTENT, move, press_save, write
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.server.process import server

pytestmark = needs_chromium
APP = "viam.app.v1.AppService"
CHOSEN = ".cm-tooltip-autocomplete [aria-selected] .cm-completionLabel"
SENSOR = {"name": "heat", "api": "rdk:component:sensor", "model": "fake"}


@asynccontextmanager
async def joined(folder: Path, *, machine: bool = True) -> AsyncIterator[tuple[CloudProcess, Page, dict[str, Any]]]:
    """Run a cloud with one machine, and a browser that is logged in."""
    async with cloud(folder / "cloud") as running:
        async with running.client() as client:
            robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
            part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
        credentials = {"id": part["id"], "secret": part["secret"], "app_address": f"http://{running.address}"}
        async with browser(folder) as page:
            await sign_in(page, running)
            if not machine:
                yield running, page, part
                return
            (folder / "machine").mkdir()
            async with server(folder / "machine", {"cloud": credentials}, "-disable-mdns"):
                yield running, page, part


async def save(running: CloudProcess, part: dict[str, Any], document: dict[str, Any]) -> None:
    async with running.client() as client:
        await client.call(APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=json.dumps(document))


async def test_edit_complete_review_save_run_break_and_revert(tmp_path: Path) -> None:
    async with joined(tmp_path) as (running, page, part):
        path = f"/machines/{part['id']}/config"
        await page.goto(f"http://{running.address}{path}")
        assert await page.unnamed() == []

        # completion while typing
        await write(page, "{}")
        await page.press("Home")
        await page.press("ArrowRight")
        await page.type('"comp')
        await page.until_text("components", CHOSEN)
        await page.press("Enter")
        await page.press("Control+ ")
        await page.until_text("{ }", CHOSEN)
        await page.press("Enter")
        await page.type("heat")
        assert '"name": "heat"' in await page.value("#document")

        # a mistake is marked at its line
        await write(
            page, '{\n  "components": [\n    {"name": "heat", "api": "rdk:component:sensor", "model": "fakee"}\n  ]\n}'
        )
        await page.until_text("did you mean 'fake'", "#findings")
        assert "line 3" in await page.text("#findings")
        await page.until("!!document.querySelector('.cm-lint-marker-error')")
        assert await page.texts(".cm-lintRange-error") == ['"fakee"']
        assert '"fakee"' in await page.text(".cm-line:nth-of-type(3)")

        # the next problem by the keyboard, folding, searching
        await page.press("F8")
        await page.until("getSelection().toString() === '\"fakee\"'")
        await page.click(".cm-foldGutter .cm-gutterElement:nth-of-type(3) span")
        await page.until("!!document.querySelector('.cm-foldPlaceholder')")
        await page.focus(CONTENT)
        await page.press("Control+f")
        await page.until("document.activeElement.getAttribute('main-field') === 'true'")
        await page.press("Escape")
        assert await faults(page) == []

        # review and save: the machine applies it within a moment
        await write(page, {"components": [SENSOR]})
        await page.until_text("No problems found", "#findings")
        await page.click("[value=review]")
        await page.until_text("1 added", "main")
        await page.until_text("components.heat", "main")
        await press_save(page)
        await page.until("document.querySelector('#running[data-runs=yes][data-revision=\"2\"]')")

        # break it: the reason is shown
        broken = {**SENSOR, "api": "rdk:component:motor", "model": "gpio", "name": "wheel"}
        await write(page, {"components": [SENSOR, {**broken, "attributes": {"board": "none", "pins": {"pwm": "1"}}}]})
        await page.click("[value=review]")
        await press_save(page)
        await page.until("document.querySelector('#running[data-revision=\"3\"]')")
        # the number and the reason come with different reports of the machine
        await page.until_text("but has 1 problem", "#running")
        await page.until_text("wheel", "#running")

        # revert with one click
        await page.goto(f"http://{running.address}/machines/{part['id']}/history")
        assert await page.unnamed() == []
        await page.click("#revision-2 form button")
        await page.until("document.querySelector('#running[data-runs=yes][data-revision=\"4\"]')")
        assert json.loads(await page.value("#document")) == {"components": [SENSOR]}


async def test_a_draft_is_not_lost_by_accident_or_without_scripts(tmp_path: Path) -> None:
    async with joined(tmp_path, machine=False) as (running, page, part):
        url = f"http://{running.address}/machines/{part['id']}/config"
        await page.goto(url)
        await write(page, '{"debug": true}')
        await page.goto(f"http://{running.address}/")
        assert page.dialogs == ["beforeunload"]
        await page.goto(url)
        assert page.dialogs == ["beforeunload"]

        await page.until("!!document.querySelector('.list nav')")
        await page.scripts(enabled=False)
        await page.goto(url)
        await page.fill("#document", '{"components": []}')
        await page.select("[name=model]", "rdk:component:sensor fake")
        await page.fill("[name=resource]", "heat")
        await page.click("[value=add]")
        await page.until("document.querySelector('#document').value.includes('heat')")
        await page.fill("#document", '{"debug": 1}')
        await page.click("[value=check]")
        assert "debug" in await page.until_text("line 1", "#findings")
        await page.fill("#document", '{"debug": true}')
        await page.click("[value=review]")
        await page.until_text("Nothing is saved yet")
        await page.click("[value=save]")
        await page.until_text("Revision 2")
        assert json.loads(await page.value("#document")) == {"debug": True}


async def test_completion_with_the_keyboard_and_undo(tmp_path: Path) -> None:
    async with joined(tmp_path, machine=False) as (running, page, part):
        motor = {"name": "left", "api": "rdk:component:motor", "model": "gpio", "attributes": {"board": "", "pins": {}}}
        await save(running, part, {"components": [SENSOR, motor]})
        await page.goto(f"http://{running.address}/machines/{part['id']}/config")
        await page.focus(CONTENT)
        before = await page.value("#document")
        await move(page, '"pins": {')
        await page.press("Control+ ")
        await page.until_text("a", CHOSEN)
        await page.press("ArrowDown")
        await page.until(f"document.querySelector('{CHOSEN}').innerText === 'b'")
        described = await page.evaluate("document.activeElement.getAttribute('aria-activedescendant')")
        assert await page.text(f"#{described} .cm-completionLabel") == "b"
        await page.press("Enter")
        await page.until("document.querySelector('#document').value.includes('\"b\": ')")
        await page.press("Escape")
        await page.press("Control+z")
        await page.until(f"document.querySelector('#document').value === {json.dumps(before)}")
        await page.press("Tab")
        await page.until(f"!document.activeElement.matches('{CONTENT}')")


async def test_concurrent_edits_in_two_browsers_lose_nothing(tmp_path: Path) -> None:
    async with joined(tmp_path, machine=False) as (running, page, part):
        await page.goto(f"http://{running.address}/machines/{part['id']}/config")
        await write(page, {"debug": True})
        await save(running, part, {"components": [SENSOR]})
        page.expect("status of 409")
        await page.click("[value=review]")
        await page.until_text("Someone else has saved in the meantime")
        assert json.loads(await page.value("#document")) == {"components": [SENSOR], "debug": True}
        await page.click("[value=review]")
        await page.until_text("1 changed")
        await press_save(page)
        await page.until_text("Revision 3")


async def test_a_fragment_reaches_the_machine_that_uses_it(tmp_path: Path) -> None:
    async with joined(tmp_path) as (running, page, part):
        await page.goto(f"http://{running.address}/fragments")
        assert await page.unnamed() == []
        await page.fill("[name=name]", "base")
        await page.click("main form button")
        await page.until("document.querySelector('#document')")
        assert await page.unnamed() == []
        fragment = (await page.path()).rpartition("/")[2]
        await save(running, part, {"fragments": [{"id": fragment}]})
        await write(page, {"components": [SENSOR]})
        await page.click("[value=review]")
        await page.until_text("1 machine part uses this fragment")
        await press_save(page)
        await page.until_text("Revision 2")
        await page.until_text("rover", "main")
        await page.goto(f"http://{running.address}/machines/{part['id']}/config")
        await page.until("document.querySelector('#running[data-runs=yes]')")
        assert "heat" in str(await page.evaluate("document.querySelector('#resolved').textContent"))


async def test_on_a_phone(tmp_path: Path) -> None:
    async with joined(tmp_path, machine=False) as (running, page, part):
        await save(running, part, {"components": [{**SENSOR, "attributes": {"x" * 60: "y" * 200}}]})
        await page.size(390, 844, phone=True)
        for path in ("config", "history?from=1&to=2"):
            await page.goto(f"http://{running.address}/machines/{part['id']}/{path}")
            await page.until_text("Configuration")
            assert await page.overflow() == 0


async def test_a_difference_is_shown_side_by_side_and_in_one_column_on_a_phone(tmp_path: Path) -> None:
    async with joined(tmp_path, machine=False) as (running, page, part):
        for rpm in (60, 90):
            await save(running, part, {"components": [{**SENSOR, "attributes": {"rpm": rpm}}]})
        url = f"http://{running.address}/machines/{part['id']}/history?from=2&to=3"
        await page.goto(url)
        await page.until("document.querySelectorAll('.merged .cm-content').length === 2")
        assert await page.texts(".merged .cm-changedText") == ["6", "9"]
        assert await page.count("#comparison table") == 0
        assert [await faults(page), await page.unnamed()] == [[], []]
        await page.size(390, 844, phone=True)
        await page.goto(url)
        await page.until("document.querySelectorAll('.merged .cm-content').length === 1")
        assert "90" in await page.text(".merged .cm-changedLine")
        assert await page.overflow() == 0
        await page.scripts(enabled=False)
        await page.goto(url)
        assert await page.count("#comparison table.difference tr.plus") == 1


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
async def test_a_trigger_is_added_by_its_form(tmp_path: Path, scripts: bool) -> None:
    async with joined(tmp_path, machine=False) as (running, page, part):
        url = f"http://{running.address}/machines/{part['id']}/triggers"
        await page.scripts(enabled=scripts)
        await page.goto(url)
        await page.fill("#form [name=name]", "hot")
        await page.fill("#form [name=method]", "sensor:oven:Readings")
        await page.fill("#form [name=field]", "celsius")
        await page.fill("#form [name=value]", "30")
        page.expect("status of 400")
        await page.fill("#form [name=address]", "nobody")
        await page.click("#form button.primary")
        await page.until_text("To: the scheme of the URL is missing", "#form .note")
        assert await page.value("#form [name=field]") == "celsius"
        await page.fill("#form [name=address]", "https://example.com/hook")
        await page.click("#form button.primary")
        await page.until_path(f"/machines/{part['id']}/config")
        assert "sensor:oven:Readings" in await page.text("main")
        await press_save(page, scripts=scripts)
        await page.until_text("Revision 2", "main")
        await page.goto(url)
        assert "when data from sensor:oven:Readings meets a condition" in await page.text(".trigger")
        if scripts:
            assert await page.count("#form .of-logs:not([hidden])") == 1
            assert await page.evaluate("getComputedStyle(document.querySelector('#form .of-logs')).display") == "none"
            await page.goto(f"{url}?edit=hot#form")
            assert await faults(page) == []
