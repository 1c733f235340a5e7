"""The tab Control in the cloud: by WebRTC with video, through the cloud without, and at rest when the cloud ends."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.page import Page
from tests.e2e.browser.signing import sign_in
from tests.e2e.browser.test_control import BENCH, CALL, PAD, PATIENCE, WINDOW, WITHOUT_WEBRTC, Rover, drive
from tests.e2e.browser.writing import press_save
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.server.process import server

pytestmark = needs_chromium
APP = "viam.app.v1.AppService"
SETS = "viam.app.dataset.v1.DatasetService"


@asynccontextmanager
async def joined(folder: Path, *, webrtc: bool) -> AsyncIterator[tuple[CloudProcess, Page, Rover]]:
    """Run a cloud with a joined bench, and a browser on the tab Control of it, with or without WebRTC."""
    async with cloud(folder / "cloud") as running:
        async with running.client() as client:
            robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
            part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
        credentials = {"id": part["id"], "secret": part["secret"], "app_address": f"http://{running.address}"}
        document = {**json.loads(BENCH.read_text()), "cloud": credentials}
        async with running.client() as client:
            config = json.dumps({key: value for key, value in document.items() if key != "cloud"})
            await client.call(APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=config)
        (folder / "machine").mkdir()
        async with (
            server(folder / "machine", {"cloud": credentials}, "-disable-mdns") as machine,
            browser(folder) as page,
            Channel(machine.address, credentials=ApiKey(*running.key)) as channel,
        ):
            page.expect("net::ERR_|error dialing|WebSocket|status of 50")  # of connections to a killed cloud
            if not webrtc:
                await page.call("Page.addScriptToEvaluateOnNewDocument", source=WITHOUT_WEBRTC)
            await sign_in(page, running)
            await page.goto(f"http://{running.address}/machines/{part['id']}/control")
            await page.until(f"document.querySelector('{PAD}')")
            yield running, page, Rover(ApiClient(channel))


async def test_by_webrtc_with_live_video(tmp_path: Path) -> None:
    async with joined(tmp_path, webrtc=True) as (running, page, rover):
        assert await page.evaluate("document.querySelector('.line').dataset.way") == "webrtc"
        await page.until("document.querySelector('[data-card=camera] [data-picture=video] video').videoWidth > 100")
        await drive(page, rover)
        await page.release()
        await rover.until(moving=False, within=CALL)
        await drive(page, rover)
        await page.release()
        await rover.until(moving=False, within=CALL)
        await page.click("[data-card=left] details:not(.menu) summary")
        await page.click("[data-card=left] details .buttons button")  # runs for a second
        await rover.until_running("left")
        await page.click(".control button.all, .stop-all button")
        await rover.until_power("left", 0)
        await page.click("[data-card=finder] .buttons button")
        await page.until_text("to the configuration", "[data-card=finder]")
        async with running.client() as client:
            await client.call(SETS, "", "create_dataset", name="seen", organization_id=running.facts["organization"])
        await page.click("[data-card=camera] details:not(.menu) summary")
        await page.until("document.querySelector('[data-card=camera] select').selectedOptions[0].innerText === 'seen'")
        await page.click("[data-card=camera] form button")
        await page.until_text("Added to seen", "[data-card=camera]")
        # page and machine are connected without the cloud
        await drive(page, rover)
        await running.stop(signal.SIGKILL)
        await page.release()
        await rover.until(moving=False, within=CALL)
        await drive(page, rover)
        await page.release()
        await rover.until(moving=False, within=CALL)


async def test_through_the_cloud(tmp_path: Path) -> None:
    async with joined(tmp_path, webrtc=False) as (running, page, rover):
        assert await page.evaluate("document.querySelector('.line').dataset.way") == "cloud"
        await page.until("document.querySelector('[data-card=camera] [data-picture=pictures]')")
        await drive(page, rover)
        await page.release()
        await rover.until(moving=False, within=CALL)
        await drive(page, rover)
        await running.stop(signal.SIGKILL)
        took = await rover.until(moving=False, within=WINDOW + CALL)
        print(f"the cloud was killed: at rest after {took * 1000:.0f} ms")
        await page.release()


@pytest.mark.parametrize("webrtc", [True, False], ids=["webrtc", "through the cloud"])
async def test_killed_tab(tmp_path: Path, webrtc: bool) -> None:
    async with joined(tmp_path, webrtc=webrtc) as (_, page, rover):
        await drive(page, rover)
        await page.crash()
        took = await rover.until(moving=False, within=WINDOW + CALL)
        print(f"the tab was killed: at rest after {took * 1000:.0f} ms")


async def test_statistics_of_the_machine_are_drawn_in_the_cloud(tmp_path: Path) -> None:
    async with joined(tmp_path, webrtc=False) as (running, page, _rover):
        part = (await page.path()).split("/")[2]
        await page.goto(f"http://{running.address}/machines/{part}/statistics")
        await page.until("document.querySelector('.charts canvas') !== null", limit=PATIENCE)
        await page.until_text("machine-server: memory", ".charts", limit=PATIENCE)


async def test_discovered_devices_are_added_to_the_configuration(tmp_path: Path) -> None:
    async with joined(tmp_path, webrtc=False) as (_, page, _rover):
        await page.click("[data-card=finder] .buttons button")
        await page.until("document.querySelectorAll('[data-card=finder] .device').length > 1")
        await page.click("[data-card=finder] .device input")
        await page.click("[data-card=finder] form button")
        await page.until_text("Nothing is saved yet")
        await press_save(page)
        await page.until_text("Revision 3")
