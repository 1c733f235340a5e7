"""Tasks of a new user with many machines, as rows of the table of `tests.e2e.browser.tasks`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import trio

from tests.e2e.browser.chromium import browser
from tests.e2e.browser.following import Follower, followers
from tests.e2e.browser.hand import Hand, run
from tests.e2e.browser.page import Page
from tests.e2e.browser.signing import sign_in
from tests.e2e.browser.test_alerts import measured, message
from tests.e2e.browser.test_fleet import COUNT, filled
from tests.e2e.browser.writing import CONTENT
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.triggers.receiver import Receiver, receiver

APP: Final = "viam.app.v1.AppService"
MACHINES: Final = 200
BROKEN: Final = 10
LIST: Final = "!!document.querySelector('#machines tbody tr')"
SPEED: Final = "components.arm.attributes.speed"
ARMS: Final = {"components": [{"name": "arm", "api": "rdk:component:arm", "model": "fake", "attributes": {"speed": 1}}]}


async def change_value(hand: Hand) -> None:
    """Change one value on 50 machines."""
    await hand.choose("[name=tag]", "press")
    await hand.page.until_text(f"Change all {COUNT} machines")
    await hand.click("[data-all]")
    await hand.page.until("!!document.querySelector('[name=path]')")
    await hand.suggested("[name=path]", "speed", SPEED)
    await hand.fill("[name=value]", "3")
    await hand.click("[data-work] button")
    await hand.page.until_text(f"{COUNT} of {COUNT} machines will change")
    await hand.click("#preview form button")
    await hand.page.until_text(f"{COUNT} of {COUNT} machines", "#job-state", limit=60)


async def find_change(hand: Hand) -> None:
    """Find who changed the configuration of a machine, and what."""
    await hand.click("nav a[href='/audit']")
    await hand.page.until_text("temporary key")
    await hand.click(".audit a[href*='/history']")
    await hand.page.until_text("speed", ".difference, .merged")


async def be_notified(hand: Hand, hooks: Receiver, running: CloudProcess, part: str) -> None:
    """Be notified when a freezer is warm, from no rule to the message."""
    await hand.click("nav a[href='/alerts']")
    await hand.click("a[href='/alerts/rules']")
    await hand.click("details.new summary")
    await hand.fill("#form [name=name]", "Freezer warm")
    await hand.fill("#form [name=field]", "celsius")
    await hand.fill("#form [name=value]", "-15")
    await hand.fill("#form [name=minutes]", "0")
    await hand.fill("#form [name=targets]", hooks.url())
    await hand.click("#form [value=save]")
    await hand.page.until_text("celsius is above -15")
    async with running.client() as client:
        await measured(client, part, -3.0)
    assert (await message(hooks, 1))["machine_name"] == "freezer"


async def roll_out(hand: Hand) -> None:
    """Roll a fragment out to 200 machines of which 10 break, and see it stop."""
    await hand.click("nav a[href='/fragments']")
    await hand.click("main a[href^='/fragments/']")
    await hand.page.until(f"!!document.querySelector('{CONTENT}')")
    await hand.edit('"speed": ', "2")
    await hand.click("[value=review]")
    await hand.page.until("!!document.querySelector('[value=hold]')")
    await hand.click("[value=hold]")
    await hand.page.until("!!document.querySelector('[name=stages]')")
    await hand.fill("[name=stages]", "50, 100")
    await hand.click(".new-rollout button")
    await hand.page.until_text(f"{MACHINES} of {MACHINES} machines are selected")
    await hand.click("#preview button")
    await hand.page.until_text("machines failed, more than", limit=50)


async def _values(folder: Path, page: Page) -> None:
    async with cloud(folder / "values") as running:
        (part, *_) = await filled(running)
        await sign_in(page, running)
        home = f"http://{running.address}/"
        await run(Hand(page), home, change_value, LIST, "a loop of 50 commands, 70 s; with a fragment 2 commands")
        async with running.client() as client:
            created = await client.call(
                APP, "", "create_key", name="temporary key", authorizations=[_owner(running.facts["organization"])]
            )
        async with running.client((created["id"], created["key"])) as client:
            text = (await client.call(APP, "", "get_robot_part", id=part))["config_json"]
            document = json.loads(text)
            document["components"][0]["attributes"]["speed"] = 4
            await client.call(APP, "", "update_robot_part", id=part, robot_config_json=json.dumps(document))
        await run(Hand(page), home, find_change, LIST, "not shown, no link to the difference")


def _owner(organization: str) -> dict[str, Any]:
    return {
        "authorization_type": "role",
        "authorization_id": "organization_owner",
        "resource_type": "organization",
        "resource_id": organization,
        "organization_id": organization,
        "identity_id": "",
    }


async def _freezer(folder: Path, page: Page) -> None:
    async with cloud(folder / "freezer", "--webhook-allow", "127.0.0.1") as running, receiver() as hooks:
        async with running.client() as client:
            robot = await client.call(APP, "", "new_robot", name="freezer", location=running.facts["location"])
            part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
            await measured(client, part, -20.0)
        await sign_in(page, running)
        task = partial(be_notified, hooks=hooks, running=running, part=part)
        task.__doc__ = be_notified.__doc__
        await run(Hand(page), f"http://{running.address}/", task, LIST, "15 lines of JSON, no form")


async def _break(machines: list[Follower]) -> None:
    """Let the first machines have a problem with the second revision."""
    for machine in machines[:BROKEN]:
        machine.bad, machine.reason = "2", "components.arm: this arm has no such speed"


async def _rollout(folder: Path, page: Page) -> None:
    async with cloud(folder / "rollout") as running:
        async with running.client() as client:
            owner = running.facts["organization"]
            created = await client.call(APP, "", "create_fragment", name="arms", organization_id=owner, config=ARMS)
        names = [f"press-{number:03}" for number in range(MACHINES)]
        async with followers(running, names, str(created["id"])) as machines:
            await _break(machines)
            await sign_in(page, running)
            await run(Hand(page), f"http://{running.address}/", roll_out, LIST, "not tried; versions only")


async def fleet_tasks() -> None:
    """Run all tasks."""
    with TemporaryDirectory(dir="/dev/shm") as temporary:
        folder = Path(temporary)
        async with browser(folder) as page:
            page.expect(".")
            for task in (_values, _freezer, _rollout):
                await task(folder, page)


if __name__ == "__main__":
    trio.run(fleet_tasks)
