"""The page of captured data in a real browser: images with boxes, plots, deletion with a confirmation, a phone."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

from PIL import Image

from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.page import Page
from tests.e2e.browser.signing import sign_in
from tests.e2e.cloud.process import CloudProcess, cloud

pytestmark = needs_chromium
APP = "viam.app.v1.AppService"
SYNC = "viam.app.datasync.v1.DataSyncService"
DATA = "viam.app.data.v1.DataService"
DECODED = "Promise.all([...document.images].map((one) => one.decode().then(() => one.naturalWidth)))"
START = datetime(2026, 1, 1, tzinfo=UTC)


def picture(color: str) -> bytes:
    created = io.BytesIO()
    Image.new("RGB", (320, 240), color).save(created, "PNG")
    return created.getvalue()


async def fill(running: CloudProcess) -> None:
    """Upload three images, the last with a box, and a hundred readings."""
    async with running.client() as client:
        robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
        part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
        for number, color in enumerate(("navy", "teal", "orange")):
            times = {"time_requested": START + timedelta(seconds=number)}
            sent = await client.call(
                SYNC,
                "",
                "data_capture_upload",
                metadata={"part_id": part, "component_name": color, "type": "BINARY_SENSOR", "tags": ["day"]},
                sensor_contents=[{"metadata": times, "binary": picture(color)}],
            )
        box = {"x_min_normalized": 0.1, "y_min_normalized": 0.2, "x_max_normalized": 0.5, "y_max_normalized": 0.6}
        await client.call(
            DATA, "", "add_bounding_box_to_image_by_id", binary_data_id=sent["file_id"], label="cat", **box
        )
        readings = [
            {
                "metadata": {"time_requested": START + timedelta(seconds=number)},
                "struct": {"readings": {"level": float(number % 10), "name": "tank"}},
            }
            for number in range(100)
        ]
        metadata = {"part_id": part, "component_name": "tank", "method_name": "Readings", "type": "TABULAR_SENSOR"}
        await client.call(SYNC, "", "data_capture_upload", metadata=metadata, sensor_contents=readings)


async def files_are_selected(page: Page) -> None:
    """Select all files, none, and with Shift those up to one; put all into a new dataset."""
    selected = "document.querySelectorAll('.tile input:checked').length"
    for count in (3, 0):
        await page.click("[data-select-all] input")
        assert await page.evaluate(selected) == count
    await page.click(".tile input")
    assert await page.evaluate("document.querySelector('[data-select-all] input').indeterminate")
    await page.evaluate(
        "document.querySelector('.tile:last-child input')"
        ".dispatchEvent(new MouseEvent('click', {shiftKey: true, bubbles: true}))"
    )
    assert await page.evaluate(selected) == 3
    assert await page.evaluate("document.querySelector('[data-select-all] input').checked")
    await page.fill("[name=new_dataset]", "tanks")
    await page.click("button[value=dataset]")
    await page.until("[...document.querySelectorAll('[name=dataset] option')].some((one) => one.text === 'tanks')")


async def actions_stay_in_view(page: Page) -> None:
    """Select a file on a small screen, and let an action be refused: both stay as they were."""
    await page.size(400, 700)
    top = "document.querySelector('.selected').getBoundingClientRect().top"
    await page.evaluate("document.querySelector('.tiles').scrollIntoView({behavior: 'instant'})")
    assert not await page.evaluate("document.querySelector('.selected').checkVisibility()")
    await page.evaluate("document.querySelector('.tile:nth-child(2) input').click()")
    await page.until(f"{top} < innerHeight - 40")
    await page.until_text("Selected files (1)")
    await page.fill("[name=new_tag]", "kept")
    page.expect("status of 400")
    await page.click("button[value=dataset]")
    await page.until("document.readyState === 'complete' && document.querySelector('[role=alert]')")
    assert await page.evaluate("[...document.querySelectorAll('.tile input')].map((one) => one.checked)") == [
        False,
        True,
        False,
    ]
    assert await page.value("[name=new_tag]") == "kept"
    await page.until_text("Selected files (1)")
    await page.size(1280, 900)


async def test_pictures_do_not_move_the_page_when_they_are_loaded(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running:
        await fill(running)
        async with browser(tmp_path) as page:
            await sign_in(page, running, path="/data")
            heights = "[...document.querySelectorAll('.picture')].map((one) => one.getBoundingClientRect().height)"
            await page.until(f"document.images.length === 3 && {DECODED}")
            loaded = await page.evaluate(heights)
            await page.evaluate("for (const one of document.images) one.removeAttribute('src')")
            assert await page.evaluate(heights) == loaded


async def test_data_are_shown_filtered_and_deleted(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running:
        await fill(running)
        async with browser(tmp_path) as page:
            await sign_in(page, running, path="/data")
            assert await page.until(f"document.images.length === 3 && {DECODED}") == [320] * 3
            placed = """(() => {
                const box = document.querySelector(".picture rect").getBoundingClientRect();
                const image = document.querySelector(".picture:has(rect) img").getBoundingClientRect();
                const share = (box.left - image.left) / image.width;
                return Math.abs(share - 0.1) < 0.02 && Math.abs(box.width / image.width - 0.4) < 0.02
                    && Math.abs(box.height / image.height - 0.4) < 0.02;
            })()"""
            await page.until(placed)
            assert await page.unnamed() == []
            await actions_stay_in_view(page)
            await page.goto(f"http://{running.address}/data")
            await files_are_selected(page)
            await page.fill("[name=component]", "teal")
            await page.click("form[role=search] button")
            await page.until("document.images.length == 1")
            await page.click(".tile input[type=checkbox]")
            await page.click("button.danger")
            await page.until_text("Delete 1 file?")
            await page.click("button.danger")
            await page.until_text("No files match")
            await page.click(".tabs a:nth-of-type(2)")
            await page.until_text("No readings match")
            await page.goto(f"http://{running.address}/data?view=readings")
            await page.until_text("tank level")
            await page.until("document.querySelector('.chart canvas').getBoundingClientRect().height > 100")
            await page.size(390, 844, phone=True)
            await page.until("document.documentElement.scrollWidth <= innerWidth")
            assert await page.unnamed() == []
