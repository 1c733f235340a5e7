"""The page Control of the cloud drives a rover with two motors on MicroPython."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.signing import sign_in
from tests.e2e.browser.test_control import CALL, PAD, PATIENCE, Rover
from tests.e2e.micro.machines import CAR
from tests.e2e.micro.program import FIRMWARE, micro_server
from tests.e2e.micro.test_cloud import joined

pytestmark = needs_chromium


@pytest.mark.parametrize(("host", "heap"), [(FIRMWARE, "128k")])
async def test_a_rover_is_driven_from_the_page(tmp_path: Path, host: str, heap: str) -> None:
    (tmp_path / "browser").mkdir()
    async with joined(tmp_path) as opened:
        await opened.save(CAR)
        with micro_server(tmp_path, {"cloud": opened.section}, host, heap) as server:
            await trio.to_thread.run_sync(server.until, "configured: 5 of 6")
            async with (
                browser(tmp_path / "browser") as page,
                Channel(f"http://{server.address}", credentials=ApiKey(*opened.running.key)) as channel,
            ):
                rover = Rover(ApiClient(channel))
                await sign_in(page, opened.running)
                await page.goto(f"http://{opened.running.address}/machines/{opened.part}/control")
                await page.until(f"document.querySelector('{PAD}')", limit=PATIENCE)
                await page.hold(PAD, down=-0.8)
                await rover.until(moving=True, within=PATIENCE)
                await page.release()
                await rover.until(moving=False, within=CALL)
                await page.goto(f"http://{opened.running.address}/machines/{opened.part}")
                await page.until_text("this server has no models of camera", limit=PATIENCE)
                await page.until_text("heap_free_bytes", limit=PATIENCE)
