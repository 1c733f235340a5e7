"""The labelling page in a real browser: tags and boxes by mouse and keys, lost connections, two people, a phone."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from PIL import Image, ImageDraw

from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.looking import faults
from tests.e2e.browser.page import Page
from tests.e2e.browser.signing import sign_in
from tests.e2e.cloud.process import CloudProcess, cloud

pytestmark = needs_chromium
APP = "viam.app.v1.AppService"
DATA = "viam.app.data.v1.DataService"
SETS = "viam.app.dataset.v1.DatasetService"
SYNC = "viam.app.datasync.v1.DataSyncService"


def picture(number: int) -> bytes:
    image = Image.new("RGB", (640, 480), (40, 60 + 20 * number, 90))
    ImageDraw.Draw(image).rectangle((160, 120, 320, 240), fill=(220, 180, 60))
    created = io.BytesIO()
    image.save(created, "PNG")
    return created.getvalue()


class World:
    """A cloud with a dataset of pictures, and a page that shows its first picture."""

    def __init__(self, running: CloudProcess, page: Page, dataset: str, files: Sequence[str]) -> None:
        self.running = running
        self.page = page
        self.dataset = dataset
        self.files = files
        self.url = f"http://{running.address}/datasets/{dataset}"

    async def stored(self, subject: str) -> tuple[list[str], list[dict[str, Any]]]:
        """Return tags and boxes as the published calls do."""
        async with self.running.client() as client:
            file = (await client.call(DATA, "", "binary_data_by_ids", binary_data_ids=[subject]))["data"][0]["metadata"]
        return list(file["capture_metadata"]["tags"]), list(file["annotations"]["bboxes"])

    async def until_saved(self) -> None:
        await self.page.until("document.querySelector('[data-saved]').dataset.saved === 'saved'")

    async def open(self, number: int = 0, query: str = "") -> None:
        await self.page.goto(f"{self.url}/label/{self.files[number]}?{query}")
        await self.until_open()

    async def palette(self) -> list[str]:
        """Return each label with its key and the number of its pictures."""
        entries: list[str] = await self.page.evaluate(
            "[...document.querySelectorAll('.palette li')].map((entry) => entry.textContent)"
        )
        return entries

    async def until_open(self) -> None:
        await self.page.until(
            "document.querySelector('[data-image]').complete && document.querySelector('.palette li')"
        )
        await self.until_saved()

    async def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag with the mouse from one place of the picture to another, in fractions of its size."""
        area = await self.page.evaluate(
            "(() => { const area = document.querySelector('[data-stage]').getBoundingClientRect();"
            " return [area.left, area.top, area.width, area.height]; })()"
        )
        left, top, width, height = area
        shares = [[a + (b - a) * share for a, b in zip(start, end, strict=True)] for share in (0, 0.3, 1)]
        points = [(left + width * x, top + height * y) for x, y in shares]
        kinds = ("mousePressed", "mouseMoved", "mouseMoved", "mouseReleased")
        for kind, (x, y) in zip(kinds, (*points, points[-1]), strict=True):
            await self.page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


@asynccontextmanager
async def labelling(folder: Path, count: int = 3, labels: Sequence[str] = ("cat", "dog")) -> AsyncIterator[World]:
    async with cloud(folder / "cloud") as running:
        async with running.client() as client:
            organization = running.facts["organization"]
            robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
            part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
            dataset = await client.call(SETS, "", "create_dataset", name="animals", organization_id=organization)
            files = []
            for number in range(count):
                sent = await client.call(
                    SYNC,
                    "",
                    "file_upload",
                    part_id=part,
                    type="FILE",
                    file_name=f"{number}.png",
                    contents=[{"data": picture(number)}],
                )
                files.append(sent["binary_data_id"])
            await client.call(DATA, "", "add_binary_data_to_dataset_by_ids", dataset_id=dataset, binary_data_ids=files)
        async with browser(folder) as page:
            await sign_in(page, running, path=f"/datasets/{dataset}")
            for label in labels:
                await page.fill("[action$=add-label] [name=label]", label)
                await page.click("[action$=add-label] button")
                await page.until_text(label, ".label-table")
            yield World(running, page, dataset, files)


def edges(box: dict[str, Any]) -> list[float]:
    return [round(box[f"{edge}_normalized"], 2) for edge in ("x_min", "y_min", "x_max", "y_max")]


async def test_tags_by_number_keys(tmp_path: Path) -> None:
    async with labelling(tmp_path) as world:
        page = world.page
        await page.click("a.primary")
        await world.until_open()
        assert await page.text("[data-position]") == "1 of 3"
        await page.press("1")
        await page.press("2")  # replaces the other label
        await page.press("ArrowRight")
        await page.until_text("2 of ", "[data-position]")
        await page.click("[data-option=advance]")
        await page.click("[data-option=single]")
        await page.press("1")
        await page.until_text("3 of ", "[data-position]")
        await world.until_saved()
        assert [(await world.stored(subject))[0] for subject in world.files] == [["dog"], ["cat"], []]
        assert await world.palette() == ["1cat1", "2dog1"]
        await page.press("p")
        await page.until_text("cat", "[data-tags]")
        await page.press("Control+z")  # the history of a picture ends when it is left
        await page.click("[data-tags] button")
        await world.until_saved()
        assert (await world.stored(world.files[1]))[0] == []
        assert await world.palette() == ["1cat0", "2dog1"]
        await page.press("Control+z")
        await page.until_text("cat", "[data-tags]")
        await world.until_saved()
        assert (await world.stored(world.files[1]))[0] == ["cat"]
        await page.goto(world.url)
        await page.until_text("67 % with labels")


async def test_the_way_back_leads_to_pictures_that_left_the_filter(tmp_path: Path) -> None:
    async with labelling(tmp_path, count=4) as world:
        page = world.page
        await world.open(0, "show=unlabelled")
        await page.click("[data-option=advance]")
        for subject in world.files[1:]:
            await page.press("1")
            await page.until(f"document.querySelector('[data-labeller]').dataset.picture === '{subject}'")
            await world.until_saved()
        await page.press("n")
        await page.until_text("This is the last picture.", "[data-end]")
        for subject in reversed(world.files[:-1]):
            await page.press("p")
            await page.until(f"document.querySelector('[data-labeller]').dataset.picture === '{subject}'")
            await page.until_text("cat", "[data-tags]")
            assert not await page.text("[data-end]")
        assert await page.text("[data-position]") == "1 left"
        await page.press("p")
        await page.until_text("This is the first picture.", "[data-end]")
        await page.press("n")  # the next one that has no labels
        await page.until_text("1 of 1", "[data-position]")


async def test_the_labeller_remembers_its_options(tmp_path: Path) -> None:
    mode = "document.querySelector('[name=mode]:checked').value"
    options = "[...document.querySelectorAll('[data-option]:checked')].map((input) => input.dataset.option).join()"
    async with labelling(tmp_path) as world:
        page = world.page
        await world.open()
        await page.press("?")
        await page.until("document.querySelector('[data-keys]').open")
        await page.press("m")
        await page.click("[data-option=advance]")
        await page.click("[data-option=keys]")
        await page.press("?")  # shortcuts are off
        await world.open(1)
        assert await page.evaluate(options) == "single,advance"
        assert await page.evaluate(mode) == "boxes"
        await page.press("m")
        assert await page.evaluate(mode) == "boxes"
        await page.evaluate("localStorage.setItem('labeller', '{')")  # as another program may have left it
        await world.open(2)
        assert await page.evaluate(options) == "single,keys"


async def test_boxes_by_mouse_and_keys(tmp_path: Path) -> None:
    async with labelling(tmp_path) as world:
        page = world.page
        await world.open()
        await page.press("m")
        await page.press("2")
        await world.drag((0.25, 0.25), (0.5, 0.5))
        await page.until_text("dog", ".box[aria-pressed=true]")
        await world.until_saved()
        tags, (box,) = await world.stored(world.files[0])
        assert (tags, box["label"], edges(box)) == ([], "dog", [0.25, 0.25, 0.5, 0.5])
        await page.press("1")  # relabels the selected box
        await world.drag((0.375, 0.375), (0.475, 0.375))  # moves it
        await world.drag((0.6, 0.5), (0.8, 0.6))  # its corner
        await world.until_saved()
        (box,) = (await world.stored(world.files[0]))[1]
        assert (box["label"], edges(box)) == ("cat", [0.35, 0.25, 0.8, 0.6])
        for _ in range(4):
            await page.press("ArrowLeft")
        await page.press("Shift+ArrowDown")
        await world.until_saved()
        (box,) = (await world.stored(world.files[0]))[1]
        assert edges(box)[0] == 0.33
        assert 0.603 < box["y_max_normalized"] < 0.607
        await page.press("b")
        await page.until("document.querySelectorAll('.box').length === 2")
        await page.press("Delete")
        await page.until("document.querySelectorAll('.box').length === 1")
        await page.press("Control+z")
        await page.until("document.querySelectorAll('.box').length === 2")
        await world.until_saved()
        assert len((await world.stored(world.files[0]))[1]) == 2
        await page.press("Escape")
        await page.press("ArrowRight")
        await page.until_text("2 of 3", "[data-position]")
        await page.until_gone(".box")
        await accepted_suggestions(world)


async def accepted_suggestions(world: World) -> None:
    """Accept what a model says about pictures: by the key, and by the button. Without that, they stay suggestions."""
    page = world.page
    files = [await suggested(world, number) for number in (3, 4, 5)]
    await page.goto(f"{world.url}/label/{files[0]}?show=suggested")
    await world.until_open()
    await page.until_text("1 of 3", "[data-position]")
    assert await page.text("[data-suspicion-text]") == "A model suggests night."
    assert await page.evaluate("document.querySelectorAll('.box.suggested').length") == 1
    await page.press("c")
    await page.until(f"document.querySelector('[data-labeller]').dataset.picture === '{files[1]}'")
    await page.click("[data-right]")
    await page.until(f"document.querySelector('[data-labeller]').dataset.picture === '{files[2]}'")
    await world.until_saved()
    for subject, confidence in zip(files, (None, None, 0.75), strict=True):
        tags, (box,) = await world.stored(subject)
        assert (tags, box["label"], edges(box)) == ([] if confidence else ["night"], "dog", [0.1, 0.2, 0.5, 0.6])
        assert box.get("confidence") == confidence
    await page.goto(f"{world.url}?show=suggested")
    assert await page.evaluate("document.querySelectorAll('figure').length") == 1


async def suggested(world: World, number: int) -> str:
    """Add a picture to the dataset as a machine captures it with the results of a model."""
    corners = {"x_min_normalized": 0.1, "y_min_normalized": 0.2, "x_max_normalized": 0.5, "y_max_normalized": 0.6}
    results = {
        "bboxes": [{"label": "dog", "confidence": 0.75, **corners}],
        "classifications": [{"label": "night", "confidence": 0.75}],
    }
    async with world.running.client() as client:
        file = (await client.call(DATA, "", "binary_data_by_ids", binary_data_ids=[world.files[0]]))["data"][0]
        sent = await client.call(
            SYNC,
            "",
            "data_capture_upload",
            metadata={
                "part_id": file["metadata"]["capture_metadata"]["part_id"],
                "type": "BINARY_SENSOR",
                "file_extension": ".png",
                "dataset_ids": [world.dataset],
            },
            sensor_contents=[{"metadata": {"annotations": results}, "binary": picture(number)}],
        )
    return str(sent["binary_data_id"])


async def test_nothing_is_lost_without_a_connection(tmp_path: Path) -> None:
    async with labelling(tmp_path) as world:
        page = world.page
        page.expect("ERR_INTERNET_DISCONNECTED")
        await world.open()
        await page.until(f"document.querySelector('[data-labeller]').dataset.ahead === '{world.files[1]}'")
        network = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        await page.call("Network.emulateNetworkConditions", offline=True, **network)
        await page.press("1")
        await page.until_text("The cloud does not answer", "[data-trouble]")
        assert await page.text("[data-saved]") == "not saved"
        await page.press("ArrowRight")  # the next picture was loaded ahead
        await page.until_text("2 of 3", "[data-position]")
        await page.press("2")
        await page.until_text("not saved (2 pictures)", "[data-saved]")
        assert [(await world.stored(subject))[0] for subject in world.files] == [[], [], []]
        await page.call("Network.emulateNetworkConditions", offline=False, **network)
        await world.until_saved()
        assert [(await world.stored(subject))[0] for subject in world.files] == [["cat"], ["dog"], []]
        await page.until("document.querySelector('[data-trouble]').hidden")


async def test_two_people_label_one_picture(tmp_path: Path) -> None:
    async with labelling(tmp_path) as world:
        page, subject = world.page, world.files[0]
        page.expect("409")
        await world.open()
        await page.press("m")
        await world.drag((0.25, 0.25), (0.5, 0.5))
        await world.until_saved()
        (box,) = (await world.stored(subject))[1]
        async with world.running.client() as client:
            await client.call(DATA, "", "add_tags_to_binary_data_by_ids", tags=["night"], binary_data_ids=[subject])
            await client.call(DATA, "", "update_bounding_box", binary_data_id=subject, bbox_id=box["id"], label="wolf")
        await page.press("ArrowRight")
        await page.until_text("Another person has changed a box", "[data-trouble]")
        assert (await world.stored(subject))[1][0]["label"] == "wolf"
        await page.click("[data-trouble-actions] button:nth-child(2)")
        await page.until_text("wolf", ".box")
        await page.until_text("night", "[data-tags]")
        await page.until("document.querySelector('[data-trouble]').hidden")
        await world.until_saved()
        async with world.running.client() as client:
            await client.call(DATA, "", "update_bounding_box", binary_data_id=subject, bbox_id=box["id"], label="lion")
        await page.focus(".box")
        await page.press("2")
        await page.until_text("Another person has changed a box", "[data-trouble]")
        await page.click("[data-trouble-actions] button:nth-child(1)")
        await world.until_saved()
        assert [box["label"] for box in (await world.stored(subject))[1]] == ["dog"]


async def test_the_labelling_pages_are_accessible_and_fit_a_phone(tmp_path: Path) -> None:
    async with labelling(tmp_path) as world:
        page = world.page
        await world.open()
        await page.press("1")
        await page.press("m")
        await world.drag((0.25, 0.25), (0.5, 0.5))
        await world.until_saved()
        problems = {"labeller": await faults(page)}
        await page.goto(world.url)
        problems["dataset"] = await faults(page)
        await page.goto(f"http://{world.running.address}/datasets")
        problems["datasets"] = await faults(page)
        await world.open()
        long = "a-name-that-is-longer-than-usual-names-of-machines-2026-01-01T00_00_00.000000Z.png"
        await page.evaluate(f"document.querySelector('[data-position]').textContent = {long!r}")  # as a page that loads
        problems["loading"] = await faults(page)
        assert problems == {"labeller": [], "dataset": [], "datasets": [], "loading": []}
        for path in (f"/datasets/{world.dataset}", "/datasets", f"/datasets/{world.dataset}/label/{world.files[0]}"):
            await page.size(320, 700, phone=True)
            await page.goto(f"http://{world.running.address}{path}")
            assert await page.overflow() == 0, path
        async with world.running.client() as client:
            await client.call(SETS, "", "rename_dataset", id=world.dataset, name="parts of line three " * 5)
        await page.reload()
        assert await page.evaluate("document.querySelector('h1').getBoundingClientRect().width") == 1  # hidden
        await trio.lowlevel.checkpoint()
