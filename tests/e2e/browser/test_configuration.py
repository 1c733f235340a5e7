"""A configuration is edited in a real browser and applied by a real machine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.page import Page
from tests.e2e.browser.signing import sign_in
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.server.process import server

pytestmark = needs_chromium
APP = "viam.app.v1.AppService"
SENSOR = {"name": "heat", "api": "rdk:component:sensor", "model": "fake"}


@asynccontextmanager
async def joined(folder: Path, *, machine: bool = True) -> AsyncIterator[tuple[CloudProcess, Page, dict[str, Any]]]:
    """Run a cloud with one machine, and a browser that is signed in."""
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


async def draft(page: Page, document: Any) -> None:
    """Replace the text in the editor, as pasting does."""
    await page.fill("#document", document if isinstance(document, str) else json.dumps(document, indent=2))


async def test_edit_complete_review_save_run_break_and_revert(tmp_path: Path) -> None:
    async with joined(tmp_path) as (running, page, part):
        path = f"/machines/{part['id']}/config"
        await page.goto(f"http://{running.address}{path}")
        assert await page.unnamed() == []

        # completion while typing
        await draft(page, "{}")
        await page.press("Home")
        await page.press("ArrowRight")
        await page.type('"comp')
        await page.until("document.querySelector('#choices:not([hidden]) li b')?.innerText === 'components'")
        await page.press("Enter")
        await page.press("Control+ ")
        await page.until("document.querySelector('#choices:not([hidden]) li b')?.innerText === '{ }'")
        await page.press("Enter")
        await page.type("heat")
        assert '"name": "heat"' in await page.value("#document")

        # a mistake is marked at its line
        await draft(
            page, '{\n  "components": [\n    {"name": "heat", "api": "rdk:component:sensor", "model": "fakee"}\n  ]\n}'
        )
        await page.until_text("did you mean 'fake'", "#findings")
        assert "line 3" in await page.text("#findings")
        await page.until("document.querySelector('[data-signs] i').dataset.line === '3'")
        assert await page.texts("[data-layer] mark") == ['"fakee"']

        # review and save: the machine applies it within a moment
        await draft(page, {"components": [SENSOR]})
        await page.until_text("No problems found", "#findings")
        await page.click("[value=review]")
        assert "components.heat" in await page.until_text("1 added", "main")
        await page.click("[value=save]")
        await page.until("document.querySelector('#running[data-runs=yes][data-revision=\"2\"]')")

        # break it: the reason is shown
        broken = {**SENSOR, "api": "rdk:component:motor", "model": "gpio", "name": "wheel"}
        await draft(page, {"components": [SENSOR, {**broken, "attributes": {"board": "none", "pins": {"pwm": "1"}}}]})
        await page.click("[value=review]")
        await page.click("[value=save]")
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
        await draft(page, '{"debug": true}')
        await page.goto(f"http://{running.address}/")
        assert page.dialogs == ["beforeunload"]
        await page.goto(url)
        assert page.dialogs == ["beforeunload"]

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


async def test_adding_with_the_list_of_models_and_the_keyboard(tmp_path: Path) -> None:
    async with joined(tmp_path, machine=False) as (running, page, part):
        await save(running, part, {"components": [SENSOR]})
        await page.goto(f"http://{running.address}/machines/{part['id']}/config")
        await page.select("[name=model]", "rdk:component:motor gpio")
        await page.fill("[name=resource]", "heat")
        page.expect("status of 400")
        await page.press("Enter")
        await page.until_text("choose another name", "[data-add-error]")
        await page.fill("[name=resource]", "left")
        await page.evaluate(
            "window.inserted = 0; document.querySelector('#document')"
            ".addEventListener('input', (event) => { window.inserted += (event.data || '').length; })"
        )
        await page.click("[value=add]")
        await page.until_text("left", "#outline")
        whole = len(await page.value("#document"))
        assert 0 < await page.evaluate("window.inserted") < whole / 1.5  # unchanged lines are not inserted again
        created = json.loads(await page.value("#document"))["components"]
        assert [item["name"] for item in created] == ["heat", "left"]
        assert created[1]["attributes"] == {"board": "", "pins": {}}

        # the outline jumps to the entry, completion works there, and everything can be undone
        await page.click("#outline [data-path='components.1']")
        await page.until("document.activeElement.id === 'document'")
        assert await page.evaluate("document.querySelector('#document').selectionStart") > 50
        before = await page.value("#document")
        await page.evaluate(
            "((a) => a.setSelectionRange(...Array(2).fill(a.value.indexOf('\"pins\"') + 9)))(document.activeElement)"
        )
        await page.press("Control+ ")
        await page.until("document.querySelector('#choices li[aria-selected=true] b')?.innerText === 'a'")
        await page.press("ArrowDown")
        chosen = await page.evaluate("document.querySelector('#choices li[aria-selected=true] b').innerText")
        described = await page.evaluate("document.activeElement.getAttribute('aria-activedescendant')")
        assert await page.text(f"#{described} b") == chosen == "b"
        await page.press("Enter")
        await page.until("document.querySelector('#document').value.includes('\"b\": ')")
        await page.press("Escape")
        await page.press("Control+z")
        await page.until(f"document.querySelector('#document').value === {json.dumps(before)}")
        await page.press("Tab")
        assert await page.evaluate("document.activeElement.id") != "document"


async def test_concurrent_edits_in_two_browsers_lose_nothing(tmp_path: Path) -> None:
    async with joined(tmp_path, machine=False) as (running, page, part):
        await page.goto(f"http://{running.address}/machines/{part['id']}/config")
        await draft(page, {"debug": True})
        await save(running, part, {"components": [SENSOR]})
        page.expect("status of 409")
        await page.click("[value=review]")
        await page.until_text("Someone else has saved in the meantime")
        assert json.loads(await page.value("#document")) == {"components": [SENSOR], "debug": True}
        await page.click("[value=review]")
        await page.until_text("1 changed")
        await page.click("[value=save]")
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
        await draft(page, {"components": [SENSOR]})
        await page.click("[value=review]")
        await page.until_text("1 machine part uses this fragment")
        await page.click("[value=save]")
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
