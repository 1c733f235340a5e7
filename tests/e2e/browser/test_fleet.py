"""Work on many machines in a real browser: filter, select, preview, apply, undo."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.looking import faults
from tests.e2e.browser.page import Page
from tests.e2e.browser.signing import sign_in
from tests.e2e.cloud.process import CloudProcess, cloud

pytestmark = needs_chromium
APP = "viam.app.v1.AppService"
FLEET = "machine.cloud.v1.FleetService"
ARM = {"components": [{"name": "arm", "api": "rdk:component:arm", "model": "fake", "attributes": {"speed": 1}}]}
COUNT = 50
TICKED = "document.querySelectorAll('#machines input[name=machine]:checked').length"
ROWS = "document.querySelectorAll('#machines tbody tr').length"


async def filled(running: CloudProcess) -> list[str]:
    """Create 50 presses and 5 other machines; return the parts of the presses."""
    parts = []
    async with running.client() as client:
        for number in range(COUNT + 5):
            name = f"press-{number:02}" if number < COUNT else f"oven-{number}"
            robot = await client.call(APP, "", "new_robot", name=name, location=running.facts["location"])
            part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
            await client.call(APP, "", "update_robot_part", id=part, robot_config_json=json.dumps(ARM))
            if number < COUNT:
                parts.append(part)
                await client.call(FLEET, "", "add_machine_tags", machine_id=robot, tags=["press"])
    return parts


async def speeds(running: CloudProcess, parts: list[str]) -> set[int]:
    """Return the different speeds of the arms."""
    found_speeds = set()
    async with running.client() as client:
        for part in parts:
            text = (await client.call(APP, "", "get_robot_part", id=part))["config_json"]
            found_speeds.add(json.loads(text)["components"][0]["attributes"]["speed"])
    return found_speeds


async def tidy(page: Page, what: str) -> None:
    """Require names for all controls, and no faults of the layout on a desktop and a phone."""
    assert await page.unnamed() == [], what
    for width, height in ((1440, 900), (360, 780)):
        await page.size(width, height, phone=width < 500)
        assert await page.overflow() <= 0, what
        assert await faults(page) == [], what
    await page.size(1440, 900)


async def test_fifty_machines_are_changed_and_undone(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, browser(tmp_path) as page:
        parts = await filled(running)
        await sign_in(page, running)
        await page.until(f"{ROWS} === {COUNT + 5}")
        assert await page.evaluate(TICKED) == 0
        assert await page.evaluate("document.querySelector('[data-select-all] input').checked") is False
        await tidy(page, "the list")
        await page.select("[name=tag]", "press")
        await page.until(f"{ROWS} === {COUNT}")
        assert "tag=press" in await page.evaluate("location.search")
        await page.until_text(f"Change all {COUNT} machines")
        await page.click("[data-select-all] input")
        assert await page.evaluate(TICKED) == COUNT
        await page.click("#selection button:not([data-all])")
        await page.until_text(f"Change {COUNT} selected machines")
        await page.select("[name=kind]", "set_value")
        await page.fill("[name=path]", "components.arm.attributes.speed")
        await page.fill("[name=value]", "3")
        await page.click("[data-work] button")
        await page.until_text(f"{COUNT} of {COUNT} machines will change")
        assert "components" in await page.text("#preview pre")
        await tidy(page, "the preview")
        assert await speeds(running, parts) == {1}
        await page.click("#preview form button")
        await page.until_text(f"{COUNT} of {COUNT} machines", "#job-state", limit=60)
        await page.until_text(f"Undo on {COUNT} machines", "#job-state")
        await tidy(page, "the job")
        assert await speeds(running, parts) == {3}
        await page.click("#job-state form button")
        await page.until_text("Undo: set components.arm.attributes.speed to 3")
        await page.until_text(f"done {COUNT} of {COUNT} machines", "#job-state", limit=60)
        assert await speeds(running, parts) == {1}
        await page.goto(f"http://{running.address}/?tag=press")
        await page.click("[formaction='/logs']")
        await page.until_text(f"{COUNT} machines")
        assert "tag=press" in await page.evaluate("location.search")
        await tidy(page, "the logs")
