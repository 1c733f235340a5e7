"""The page of triggers in a real browser, on a desktop and on a phone."""

from __future__ import annotations

import json
from pathlib import Path

from standardwebhooks.webhooks import Webhook

from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.signing import sign_in
from tests.e2e.cloud.process import cloud
from tests.e2e.triggers.receiver import answering, receiver
from tests.unit.triggers.make import SECRET, conditional, raw

pytestmark = needs_chromium
APP = "viam.app.v1.AppService"
HOT = {"operator": "gt", "value": {"chamber": {"celsius": 230}}}


async def test_dry_run_test_delivery_and_replay(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud", "--webhook-allow", "127.0.0.1") as running, receiver(answering(404)) as other:
        targets = (
            {"type": "webhook", "value": other.url(), "secret": SECRET, "seconds_between_notifications": 600},
            {"type": "email", "value": "ann@example.com"},
        )
        hot = raw(
            conditional(HOT, method="sensor:oven:Readings"), *targets, name="oven too hot", notes="Ask Ann first."
        )
        document = {
            "triggers": [hot, raw({"type": "part_offline"}, name="gone"), raw({"type": "part_onlin"}, name="x")]
        }
        async with running.client() as client:
            robot = await client.call(APP, "", "new_robot", name="mill", location=running.facts["location"])
            (part,) = await client.call(APP, "", "get_robot_parts", robot_id=robot)
            await client.call(
                APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=json.dumps(document)
            )
        async with browser(tmp_path) as page:
            await sign_in(page, running, path=f"/machines/{part['id']}/triggers")
            await page.until_text("chamber.celsius > 230")
            await page.until_text("triggers.2.event.type")
            assert await page.unnamed() == []
            assert await page.overflow() <= 0

            # a dry run, first one that does not fire
            await page.click("#trigger-1 summary")
            await page.fill("#trigger-1 textarea", '{"chamber": {"celsius": 20}}')
            await page.click("#trigger-1 [value=explain]")
            assert "20 is not greater than 230" in await page.until_text("It would not fire")
            assert await page.value("#trigger-1 textarea") == '{"chamber": {"celsius": 20}}'
            await page.fill("#trigger-1 textarea", '{"chamber": {"celsius": 231}}')
            await page.click("#trigger-1 [value=explain]")
            await page.until_text("It would fire")
            await page.screenshot(tmp_path / "triggers.png")
            assert not other.requests

            # a test delivery that fails and is sent again
            await page.click("#trigger-1 [value=test]")
            await page.until_text("Sending 2 test messages")
            log = "document.querySelector('[aria-labelledby=deliveries] .scroll').innerText"
            await page.until(f"{log}.split('failed').length > 2")
            (came,) = other.requests
            Webhook(SECRET).verify(came.body, came.headers)
            rows = await page.texts("tbody tr")
            webhook = next(number for number, row in enumerate(rows, 1) if "webhook" in row)
            await page.click(f"tbody tr:nth-child({webhook}) a")
            text = await page.until_text("the URL does not exist")
            assert came.headers["webhook-id"] in text
            assert await page.unnamed() == []
            await page.screenshot(tmp_path / "delivery.png")
            await page.click("main form button")
            await page.until("document.querySelectorAll('tbody tr').length === 2")
            assert other.requests[1].headers["webhook-id"] == came.headers["webhook-id"]

            # the list of all deliveries, also on a phone
            await page.size(390, 800, phone=True)
            for path in ("/triggers", f"/machines/{part['id']}/triggers"):
                await page.goto(f"http://{running.address}{path}")
                assert await page.overflow() <= 0, path
            await page.screenshot(tmp_path / "phone.png")
