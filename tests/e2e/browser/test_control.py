"""The tab Control: a person drives a rover, and it comes to rest when the hold ends, for any reason."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from schema.names import API
from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.looking import faults
from tests.e2e.browser.page import Page
from tests.e2e.server.process import server
from tests.scope import selected

pytestmark = needs_chromium
BENCH = Path(__file__).parents[3] / "examples" / "bench.json"
PAD = "[data-card=rover] [role=application]"
HELD = f"document.querySelector('{PAD} .knob.held') !== null"
FORWARD = "[data-card=left] .hold:last-of-type"
TIMES = 20 if selected() else 2
WINDOW = 1.0  # seconds: WINDOW of web/src/control/safety.ts
CALL = 5.0  # seconds for a call of the page while other tests use the computer, and for the patience of a busy server
PATIENCE = 30.0  # seconds for what a busy computer does some time
WITHOUT_WEBRTC = "delete window.RTCPeerConnection"
WAY = "document.querySelector('.line').dataset.way"
BASE = API.parse("rdk:component:base")
MOTOR = API.parse("rdk:component:motor")


class Rover:
    """The machine as another client sees it."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client

    async def moves(self) -> bool:
        return bool(await self._read(BASE, "rover", "is_moving"))

    async def power(self, motor: str) -> float:
        return float((await self._read(MOTOR, motor, "is_powered"))["power_pct"])

    async def _read(self, api: API, name: str, method: str) -> Any:
        """Call a method, again if STOP ALL cancelled it with all other operations."""
        with trio.fail_after(PATIENCE):
            while True:
                try:
                    return await self.client.call(api, name, method)
                except MachineError as error:
                    if error.kind is not ErrorKind.CANCELLED:
                        raise

    async def until_power(self, motor: str, power: float) -> None:
        """Wait until a motor runs with a power."""
        with trio.fail_after(PATIENCE):
            while abs(await self.power(motor) - power) > 0.01:  # noqa: ASYNC110 - no event
                await trio.sleep(0.005)

    async def until_running(self, motor: str) -> None:
        """Wait until a motor runs."""
        with trio.fail_after(PATIENCE):
            while await self.power(motor) == 0:  # noqa: ASYNC110 - no event
                await trio.sleep(0.005)

    async def stop_all(self) -> None:
        await self.client.call("viam.robot.v1.RobotService", "", "stop_all", extra=[])

    async def until(self, *, moving: bool, within: float) -> float:
        """Wait until the base moves or rests; return the seconds. Fails after `within` seconds."""
        start = trio.current_time()
        while await self.moves() is not moving:
            took = trio.current_time() - start
            assert took < within, f"the rover {'rests' if moving else 'moves'} after {took:.2f} s"
            await trio.sleep(0.005)  # no call announces when a base comes to rest
        return trio.current_time() - start


async def drive(page: Page, rover: Rover) -> None:
    """Hold the joystick forward until the rover moves; press again when a late heartbeat has ended the hold.

    On a busy computer heartbeats may be later than WINDOW: the machine stops, and the page asks to press again.
    """
    with trio.fail_after(PATIENCE):
        await page.hold(PAD, down=-0.8)
        while not await rover.moves():
            if not await page.evaluate(HELD):
                await page.release()
                await page.hold(PAD, down=-0.8)
            await trio.sleep(0.005)  # no call announces when a base begins to move


@asynccontextmanager
async def bench(folder: Path, *, webrtc: bool = True, motors: int = 0) -> AsyncIterator[tuple[str, Page, Rover]]:
    """Yield the address of the page, a browser on it, and the machine as another client sees it.

    The browser is connected by WebRTC, or has none. The machine has further `motors`.
    """
    (folder / "machine").mkdir()
    document = json.loads(BENCH.read_text())
    document["components"] += [
        {"name": f"more-{number}", "api": "rdk:component:motor", "model": "fake", "attributes": {"max_rpm": 100}}
        for number in range(motors)
    ]
    async with (
        server(folder / "machine", document, "-disable-mdns", running=True) as running,
        browser(folder) as page,
        running.client() as client,
    ):
        page.expect("ERR_INTERNET_DISCONNECTED")
        url = f"http://{running.address}/control"
        if not webrtc:
            await page.call("Page.addScriptToEvaluateOnNewDocument", source=WITHOUT_WEBRTC)
        await page.goto(url)
        await page.until(f"document.querySelector('{PAD}')")
        assert await page.evaluate(WAY) == ("webrtc" if webrtc else "direct")
        yield url, page, Rover(client)


async def released(page: Page, _: Rover) -> None:
    await page.release()


async def blurred(page: Page, _: Rover) -> None:
    await page.evaluate("window.dispatchEvent(new Event('blur'))")


async def frozen(page: Page, _: Rover) -> None:
    """What a phone does with a page when it is locked."""
    await page.call("Page.setWebLifecycleState", state="frozen")


async def left(page: Page, _: Rover) -> None:
    await page.call("Page.navigate", url="about:blank")


async def crashed(page: Page, _: Rover) -> None:
    await page.crash()


async def offline(page: Page, _: Rover) -> None:
    """Cut the calls of a page off. DevTools does not cut WebRTC off; see `cut`."""
    await page.network(on=False)


async def cut(page: Page, _: Rover) -> None:
    """Lose all that a page sends by WebRTC, without an end of the connection, as a cut network does."""
    await page.evaluate("RTCDataChannel.prototype.send = () => undefined")


async def stopped_by_another(_: Page, rover: Rover) -> None:
    await rover.stop_all()


WEBRTC, DIRECT = True, False
CAUSES = [
    (released, WEBRTC, CALL),
    (blurred, WEBRTC, CALL),
    (stopped_by_another, WEBRTC, CALL),
    (frozen, WEBRTC, WINDOW + CALL),
    (left, WEBRTC, WINDOW + CALL),
    (left, DIRECT, WINDOW + CALL),
    (crashed, WEBRTC, WINDOW + CALL),
    (offline, DIRECT, WINDOW + CALL),
    (cut, WEBRTC, WINDOW + CALL),
]


@pytest.mark.parametrize(
    ("cause", "webrtc", "limit"),
    CAUSES,
    ids=[f"{cause.__name__}-{'webrtc' if webrtc else 'direct'}" for cause, webrtc, _ in CAUSES],
)
async def test_a_rover_rests_when_the_hold_ends(
    tmp_path: Path, cause: Callable[[Page, Rover], Awaitable[None]], webrtc: bool, limit: float
) -> None:
    longest = 0.0
    browsers = TIMES if cause is frozen else 1  # DevTools does not show a tab again that it has frozen
    for number in range(browsers):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with bench(folder, webrtc=webrtc) as (url, page, rover):
            for _ in range(TIMES // browsers):
                await page.goto(url)
                await drive(page, rover)
                await cause(page, rover)
                longest = max(longest, await rover.until(moving=False, within=limit))
                await trio.sleep(0.2)
                assert not await rover.moves(), "it moves again"
                if cause is not crashed:  # the next page has a new process
                    await page.network(on=True)
                    await page.release()
    print(f"{cause.__name__}: at rest after {longest * 1000:.0f} ms at most")


async def test_keys_drive_while_they_are_held(tmp_path: Path) -> None:
    async with bench(tmp_path) as (_, page, rover):
        await page.focus(PAD)
        await page.key("w", down=True)
        await rover.until(moving=True, within=PATIENCE)
        assert await rover.power("left") > 0.4
        await page.key("a", down=True)  # turns left: the right wheel is faster
        await page.key("w", down=False)
        await rover.until_power("right", 0.5)
        await rover.until_power("left", -0.5)
        await page.key("a", down=False)
        await rover.until(moving=False, within=CALL)


async def test_a_motor_runs_while_its_button_is_held_by_pointer_or_key(tmp_path: Path) -> None:
    async with bench(tmp_path) as (_, page, rover):
        await page.hold(FORWARD)
        await rover.until_power("left", 0.3)
        await page.release()
        await rover.until_power("left", 0)
        await page.focus(FORWARD)
        await page.key(" ", down=True)
        await rover.until_power("left", 0.3)
        await page.key(" ", down=False)
        await rover.until_power("left", 0)


async def test_a_move_without_a_hold_stops_when_the_page_is_hidden(tmp_path: Path) -> None:
    async with bench(tmp_path) as (_, page, rover):
        await page.click("[data-card=left] details:not(.menu) summary")
        await page.fill("[data-card=left] .fields label:nth-of-type(2) input", "500")
        await page.click("[data-card=left] details .buttons button")
        await rover.until_running("left")
        await page.evaluate("window.dispatchEvent(new Event('blur'))")
        await trio.sleep(2 * WINDOW)
        assert await rover.power("left") != 0  # a person may look at another window meanwhile
        await frozen(page, rover)
        with trio.fail_after(WINDOW + CALL):
            await rover.until_power("left", 0)


async def until_arm_is_drawn(page: Page, *, x: float, z: float) -> None:
    """Wait until the arm is drawn from the side with its end at a place in mm, within a unit of the drawing."""
    line = "[data-card=arm] .planes figure:first-child polyline"
    end = f"document.querySelector('{line}')?.getAttribute('points').split(' ').at(-1).split(',').map(Number)"
    half = "Number(document.querySelector('[data-card=arm] .planes text').textContent.split(' ')[1])"
    across, up = f"{end}[0] * {half} / 50", f"-{end}[1] * {half} / 50"
    await page.until(f"{end} && Math.abs({across} - {x}) < 1 && Math.abs({up} - {z}) < 1")


async def test_every_card_works_and_has_names(tmp_path: Path) -> None:
    async with bench(tmp_path) as (_, page, rover):
        await page.until_text("light_lux", "[data-card=climate]")
        await page.until("document.querySelector('[data-card=camera] [data-picture=video] video')?.videoWidth > 100")
        await page.until_text("automatic", "[data-card=mode]")
        await page.click("[data-card=mode] .buttons button:nth-of-type(3)")
        await page.until(
            "document.querySelector('[data-card=mode] .buttons button:nth-of-type(3)').ariaPressed === 'true'"
        )
        await page.click("[data-card=doorbell] button.primary")
        await page.until_text("Pushed once", "[data-card=doorbell]")
        await page.click("[data-card=pi] [aria-label^='Pin 18,']")
        await page.until_text("low", "[data-card=pi] .big")
        await page.click("[data-card=pi] .buttons button:nth-of-type(2)")
        await page.until_text("high", "[data-card=pi] .big")
        await page.click("[data-card=pan] .buttons button:nth-of-type(3)")
        await page.until_text("180", "[data-card=pan] .big")
        await page.fill("[data-card=echo] textarea", '{"a": "<img src=x onerror=alert(1)>"}')
        await page.click("[data-card=echo] button.primary")
        await page.until_text("<img src=x onerror=alert(1)>", "[data-card=echo] pre")
        assert (page.dialogs, await page.count("[data-card=echo] img")) == ([], 0)
        await page.click("[data-card=finder] .buttons button")
        await page.until_text("Found", "[data-card=finder]")
        await page.click("[data-card=microphone] .buttons button")
        await page.until_text("dB", "[data-card=microphone] output")
        await page.click("[data-card=microphone] .buttons button")
        await page.until_text("silent", "[data-card=microphone] output")
        await page.until_text("heading", "[data-card=odometry] .drawings")
        shoulder = "document.querySelectorAll('[data-card=arm] input[type=range]')[1]"
        await page.until(f"{shoulder}.min === '-135' && {shoulder}.max === '135'")
        await until_arm_is_drawn(page, x=520, z=388.6)  # its pose at the start, see models/fake/arm/model.py
        await page.evaluate(f"{shoulder}.value = 0, {shoulder}.dispatchEvent(new Event('input'))")
        await page.click("[data-card=arm] .buttons button:nth-of-type(1)")
        await until_arm_is_drawn(page, x=381.05, z=630)
        await page.until_text("body", "[data-card=tracker] table")
        seen = "[...document.querySelectorAll('[data-card=tracker] .mark')].map((one) => one.getAttribute('transform'))"
        first = await page.until(f"{seen}.length === 2 && {seen}")  # the rover, and a body that circles it
        await page.until(f"{seen}[0] !== {json.dumps(first[0])}")
        assert (await page.evaluate(seen))[1] == first[1] == "translate(0 0)"
        await page.fill("[data-card=echo] textarea", "[1]")
        await page.click("[data-card=echo] button.primary")
        await page.until_text("A command is a JSON object", "[data-card=echo] [role=alert]")
        assert await faults(page) == []
        # cards out of sight are not read
        readings = "performance.getEntriesByType('resource').filter((each) => each.name.endsWith('GetReadings')).length"
        pause = "new Promise((done) => setTimeout(done, 2500))"  # two intervals of a card in sight
        await page.size(1280, 200)
        tops = "[...document.querySelectorAll('[data-api$=sensor]')].map((one) => one.getBoundingClientRect().top)"
        await page.until(f"scrollTo(0, 0), Math.min(...{tops}) > innerHeight + 300")
        with trio.fail_after(PATIENCE):  # calls that had begun before end first
            while await page.evaluate(f"performance.clearResourceTimings(), {pause}.then(() => {readings})"):
                pass
        # a hidden card is listed, also in another browser, and comes back
        await page.size(1400, 900)
        await page.click("[data-card=doorbell] summary")
        await page.click("[data-card=doorbell] .menu button:last-of-type")
        await page.until("!document.querySelector('[data-card=doorbell]')")
        await page.until_text("Arranged for everyone who opens this machine", ".control .kept")
        await page.evaluate("localStorage.clear()")
        await page.goto(await page.evaluate("location.href"))
        await page.until_text("1 hidden", ".control")
        await page.click(".control details.more summary")
        await page.click(".control details.more button")
        await page.until("document.querySelector('[data-card=doorbell]')")
        assert not await rover.moves()
