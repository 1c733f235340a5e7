"""Rollouts in a real browser: a fragment is saved for a rollout, started, stopped by failures, and taken back."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.following import Follower, followers
from tests.e2e.browser.page import Page
from tests.e2e.browser.signing import sign_in
from tests.e2e.browser.test_fleet import tidy
from tests.e2e.cloud.process import CloudProcess, cloud

pytestmark = needs_chromium
APP = "viam.app.v1.AppService"
ROLLOUTS = "machine.cloud.v1.RolloutService"
COUNT = 8
ARM = '{"components": [{"name": "arm", "api": "rdk:component:arm", "model": "fake"}]}'


async def with_fragment(running: CloudProcess) -> str:
    async with running.client() as client:
        owner = running.facts["organization"]
        created = await client.call(APP, "", "create_fragment", name="arms", organization_id=owner, config={})
    return str(created["id"])


async def held(running: CloudProcess, fragment: str) -> None:
    """Save a second revision for a rollout."""
    async with running.client() as client:
        await client.call(ROLLOUTS, "", "update_fragment_for_rollout", fragment_id=fragment, fragment_config_json=ARM)


def revisions(machines: list[Follower]) -> list[str]:
    return [machine.revision.rpartition("-")[2] for machine in machines]


async def press(page: Page, action: str) -> None:
    await page.click(f"button[name=action][value={action}]")


async def test_a_rollout_is_started_stops_by_itself_and_is_taken_back(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, browser(tmp_path) as page:
        fragment = await with_fragment(running)
        names = [f"press-{number}" for number in range(COUNT)]
        async with followers(running, names, fragment) as machines:
            await held(running, fragment)
            await sign_in(page, running)
            home = f"http://{running.address}"
            await page.goto(f"{home}/rollouts")
            await page.until_text("No change was rolled out yet")
            await tidy(page, "no rollouts")
            await page.goto(f"{home}/fragments/{fragment}")
            await page.click("a[href^='/rollouts/new']")
            await page.fill("[name=stages]", "50, 100")
            await page.fill("[name=stop_after]", "1")
            await page.fill("[name=soak]", "2")
            await page.click(".new-rollout button")
            await page.until_text(f"{COUNT} of {COUNT} machines are selected")
            await tidy(page, "the preview")
            await page.click("#preview button")
            await page.until_text("Watches 4 machines of the stage")
            await tidy(page, "one rollout")
            assert sorted(revisions(machines)) == ["1"] * 4 + ["2"] * 4
            await page.goto(f"{home}/rollouts")
            await page.until_text("arms 1 → 2")
            await tidy(page, "the list")
            await press(page, "pause")
            await page.until_text("until you resume")
            await press(page, "resume")
            await page.until_text("Watches 4 machines of the stage")
            for machine in machines:
                if machine.revision.endswith("-2"):
                    await machine.reject("components.arm: this arm has no such joint")
            await page.until_text("machines failed, more than 1")  # without a reload
            await tidy(page, "a rollout that has stopped")
            assert sorted(revisions(machines)) == ["1"] * 4 + ["2"] * 4
            await page.click(".rollout h2 a")
            await page.until_text("this arm has no such joint", "#rollout-machines")
            await press(page, "back")
            await page.until_text("All machines have returned")
            assert revisions(machines) == ["1"] * COUNT
            await page.goto(f"{home}/rollouts/versions")
            await page.until_text(f"{COUNT} machines")
            await tidy(page, "versions by machine")
            await page.goto(f"{home}/rollouts")
            await page.until_text("taken back")
            await tidy(page, "the history")
