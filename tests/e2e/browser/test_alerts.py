"""A freezer that becomes warm: reported by webhook, seen on a phone, acknowledged, and resolved."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import trio

from rpc.api.client import ApiClient
from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.signing import sign_in
from tests.e2e.cloud.process import cloud
from tests.e2e.triggers.receiver import Receiver, receiver

pytestmark = needs_chromium
APP = "viam.app.v1.AppService"
SYNC = "viam.app.datasync.v1.DataSyncService"
SMALL = """
[...document.querySelectorAll('#board :is(button, summary, .actions a)')]
  .filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < 43.5).map((each) => each.innerText)
"""
LIMIT = 60.0  # seconds for a message; it takes one


async def measured(client: ApiClient, part: str, celsius: float) -> None:
    """Upload a reading of the freezer, as its machine does."""
    metadata = {"part_id": part, "component_type": "sensor", "component_name": "probe", "method_name": "Readings"}
    reading = {
        "metadata": {"time_requested": datetime.now(UTC), "time_received": datetime.now(UTC)},
        "struct": {"readings": {"celsius": celsius}},
    }
    await client.call(
        SYNC, "", "data_capture_upload", metadata={**metadata, "type": "TABULAR_SENSOR"}, sensor_contents=[reading]
    )


async def message(hooks: Receiver, number: int) -> dict[str, Any]:
    """Return the alert in the message with this number, once it has arrived."""
    with trio.fail_after(LIMIT):
        while len(hooks.requests) < number:
            await hooks.changed.wait()
    (alert,) = json.loads(hooks.requests[number - 1].body)["alerts"]
    return dict(alert)


async def test_a_freezer_becomes_warm(tmp_path: Path) -> None:
    async with (
        cloud(tmp_path / "cloud", "--webhook-allow", "127.0.0.1") as running,
        receiver() as hooks,
        running.client() as client,
        browser(tmp_path) as page,
    ):
        robot = await client.call(APP, "", "new_robot", name="freezer", location=running.facts["location"])
        part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
        await measured(client, part, -20.0)
        await page.size(360, 780, phone=True)
        await sign_in(page, running, path="/alerts/rules")

        # a rule by the form, with a preview and a test of the receiver
        await page.click("details.new summary")
        await page.fill("#form [name=name]", "Freezer warm")
        await page.fill("#form [name=method]", "sensor:probe:Readings")
        await page.fill("#form [name=field]", "celsius")
        await page.fill("#form [name=value]", "-15")
        await page.fill("#form [name=minutes]", "0")
        await page.fill("#form [name=group]", "0")
        await page.fill("#form [name=targets]", hooks.url())
        await page.click("#form [value=preview]")
        await page.until_text("this rule would have fired 0 times")
        assert await page.overflow() <= 0
        await page.screenshot(tmp_path / "form.png")
        await page.click("#form [value=save]")
        await page.until_text("celsius of probe is above -15")
        last = "[...document.querySelectorAll('tr')].at(-1)"
        await page.evaluate(f"{last}.querySelector('[value=test]').form.requestSubmit()")
        await page.until_text("accepted the test message, status 200")
        assert (await message(hooks, 1))["machine_name"] == "a test"
        await page.screenshot(tmp_path / "rules.png")
        assert await page.unnamed() == []
        assert await page.overflow() <= 0

        # the freezer becomes warm
        await page.goto(f"http://{running.address}/alerts")
        await page.until_text("No alert is firing")
        await page.until("document.querySelector('[data-link=live]')")
        await measured(client, part, -3.0)
        alert = await message(hooks, 2)
        assert (alert["state"], alert["machine_name"], alert["value"]) == ("firing", "freezer", -3.0)
        await page.until_text("alert is firing")
        await page.until_text("celsius, alerts above -15")
        await page.screenshot(tmp_path / "firing.png")
        assert await page.overflow() <= 0
        assert await page.unnamed() == []
        assert await page.evaluate(SMALL) == []

        await page.goto(f"http://{running.address}/")
        badge = "document.querySelector('nav a[href=\"/alerts\"] .firing')"
        assert await page.until(f"{badge}?.innerText") == "1"
        await page.goto(f"http://{running.address}/alerts")

        # a person takes care of it
        await page.click("#board button.primary")
        await page.until_text("acknowledged by owner", "#board")
        await page.click("#board .silence summary")
        await page.click("#board .silence [value='4']")
        await page.until_text("Silenced until", "#board")
        await page.goto(alert["url"])
        await page.until_text("Plot of that time")
        await page.screenshot(tmp_path / "alert.png")
        await page.evaluate("document.querySelector('[value=unsilence]').form.requestSubmit()")
        await page.until_gone("[value=unsilence]")

        # and it is cold again
        await page.goto(f"http://{running.address}/alerts")
        await measured(client, part, -20.0)
        assert (await message(hooks, 3))["state"] == "resolved"
        await page.until_text("No alert is firing")
        await page.until_text("resolved", "#history")
        await page.screenshot(tmp_path / "resolved.png")
        await page.size(1440, 900)
        await page.screenshot(tmp_path / "desktop.png")
