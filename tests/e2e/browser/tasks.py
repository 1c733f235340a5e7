"""Common tasks in a real browser, as a table of clicks, seconds and typed bytes: `python -m tests.e2e.browser.tasks`.

A scripted hand finds each button at once: the seconds are those of the programs, and the clicks those of a person who
knows the page. Each task starts on the list of machines of a cloud, or on the machine's own overview, logged in.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import trio

from tests.e2e.browser.chromium import browser
from tests.e2e.browser.fleet_tasks import fleet_tasks
from tests.e2e.browser.gallery import BENCH, GRAPH, joined, log_in, measured
from tests.e2e.browser.hand import HEAD, Hand, run
from tests.e2e.browser.signing import sign_in
from tests.e2e.cloud.process import CloudProcess, cloud

APP: Final = "viam.app.v1.AppService"
PAD: Final = "[data-card=rover] [role=application]"
MOVING: Final = "document.querySelector('[data-card=rover]').innerText.includes('moving')"
TABS: Final = "nav.tabs a"
DEGRADED: Final = "document.querySelector('#machines .is-degraded')"


class Driver(Hand):
    """A hand on a joystick."""

    async def hold(self) -> None:
        """Drag the joystick forward, until the page says that the rover moves, and let go."""
        self.clicks += 1
        await self.page.hold(PAD, down=-0.8)
        await self.page.until(MOVING)
        await self.page.release()
        await self.page.until(f"!({MOVING})")


async def drive_own(hand: Driver) -> None:
    """Drive the rover from the machine's own page."""
    await hand.click(".bar a[href='/control']")
    await hand.hold()


async def drive_cloud(hand: Driver) -> None:
    """Drive the rover from the cloud."""
    await hand.click("#machines td.name a")
    await hand.click(f"{TABS}[href$='/control']")
    await hand.hold()


async def reason(hand: Hand) -> None:
    """Find why a machine is degraded, and the place in the configuration to mend it."""
    await hand.click("#machines td.name a")
    await hand.page.until_text("Not working")
    await hand.click("#problems a")
    await hand.page.until("location.pathname.endsWith('/config') && document.querySelector('#document')")


async def temperature(hand: Hand) -> None:
    """See the temperature of two machines since yesterday in one plot."""
    await hand.click(".bar a[href='/data']")
    await hand.click("nav.tabs a[href*='view=readings']")
    await hand.click(".plotting .tools button:nth-of-type(3)")  # 24 h
    await hand.page.until("document.querySelector('.charts canvas') && document.body.innerText.includes('cellar')")


async def pin(hand: Hand) -> None:
    """Set a pin of the board high."""
    await hand.click(".bar a[href='/control']")
    await hand.click("[data-card=pi] [aria-label^='Pin 18,']")
    await hand.page.until_text("low", "[data-card=pi] .big")
    await hand.click("[data-card=pi] .buttons button:nth-of-type(2)")
    await hand.page.until_text("high", "[data-card=pi] .big")


async def watch(hand: Hand) -> None:
    """Watch a camera from the cloud, as live video."""
    await hand.click("#machines td.name a")
    await hand.click(f"{TABS}[href$='/control']")
    await hand.page.until("document.querySelector('[data-card=camera] [data-picture=video] video')?.videoWidth > 100")


async def stop(hand: Hand) -> None:
    """Stop everything, from the page of the machine in the cloud."""
    await hand.click("#machines td.name a")
    await hand.click(".stop-all button")
    await hand.page.until_text("stopped", ".stop-all output")


OWN: Final = (drive_own, pin)
CLOUD: Final = (drive_cloud, reason, temperature, watch, stop)


async def prepared(running: CloudProcess) -> dict[str, Any]:
    """Create the machine, and another one with readings; return the part of the first."""
    async with running.client() as client:

        async def part(name: str) -> dict[str, Any]:
            robot = await client.call(APP, "", "new_robot", name=name, location=running.facts["location"])
            parts: list[dict[str, Any]] = await client.call(APP, "", "get_robot_parts", robot_id=robot)
            return parts[0]

        first = await part("attic")
        for each in (first, await part("cellar")):
            await measured(running, each["id"])
        return first


async def main() -> None:
    """Run all tasks."""
    document = json.loads(BENCH.read_text())
    document["components"].append({"name": "eye", "api": "rdk:component:camera", "model": "webcam"})
    print(HEAD)
    with TemporaryDirectory(dir="/dev/shm") as temporary:
        folder = Path(temporary)
        async with cloud(folder / "cloud") as running:
            part = await prepared(running)
            async with joined(running, folder, part, document) as address, browser(folder) as page:
                page.expect(".")
                await sign_in(page, running)
                for task in CLOUD:
                    await run(Driver(page), f"http://{running.address}/", task, DEGRADED)
                await log_in(page, f"http://{address}/", running.key)
                for task in OWN:
                    await run(Driver(page), f"http://{address}/", task, GRAPH)
    await fleet_tasks()


if __name__ == "__main__":
    trio.run(main)
