"""From labels to a machine's answers, in a real browser: label, be refused, train live, report, use the model."""

from __future__ import annotations

import io
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.looking import faults
from tests.e2e.browser.page import Page
from tests.e2e.browser.signing import sign_in
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.server.process import server
from tests.e2e.training.test_loop import classified
from tests.unit.training.trainers.small import backbone, picture

pytestmark = [
    needs_chromium,
    pytest.mark.skipif(
        any(find_spec(name) is None for name in ("numpy", "onnxruntime")), reason="the extra ml is not installed"
    ),
]
APP: Final = "viam.app.v1.AppService"
DATA: Final = "viam.app.data.v1.DataService"
SETS: Final = "viam.app.dataset.v1.DatasetService"
SYNC: Final = "viam.app.datasync.v1.DataSyncService"
PATIENCE: Final = 90.0  # seconds for a job on a busy computer


def encoded(chance: random.Random, label: str) -> bytes:
    file = io.BytesIO()
    picture(chance, label).save(file, "PNG")
    return file.getvalue()


async def filled(running: CloudProcess) -> tuple[str, str]:
    """Upload pictures; return the dataset and the part. One picture of 10 green ones has no label yet."""
    chance = random.Random(3)
    async with running.client() as client:

        async def call(service: str, method: str, **arguments: Any) -> Any:
            return await client.call(service, "", method, **arguments)

        organization = running.facts["organization"]
        robot = await call(APP, "new_robot", name="rover", location=running.facts["location"])
        part = (await call(APP, "get_robot_parts", robot_id=robot))[0]["id"]
        dataset = await call(SETS, "create_dataset", name="colors", organization_id=organization)
        for label, count in (("green", 10), ("red", 12)):
            files = []
            for number in range(count):
                content = [{"data": encoded(chance, label)}]
                name = f"{label}{number}.png"
                sent = await call(SYNC, "file_upload", part_id=part, type="FILE", file_name=name, contents=content)
                files.append(sent["binary_data_id"])
            labelled = files[1 if label == "green" else 0 :]
            await call(DATA, "add_tags_to_binary_data_by_ids", tags=[label], binary_data_ids=labelled)
            await call(DATA, "add_binary_data_to_dataset_by_ids", dataset_id=dataset, binary_data_ids=files)
        return dataset, part


@asynccontextmanager
async def trained(folder: Path) -> AsyncIterator[tuple[CloudProcess, Page, str, str]]:
    weights = folder / "backbone.onnx"
    weights.write_bytes(backbone())
    async with cloud(folder / "cloud", f"--training-backbone={weights}") as running:
        dataset, part = await filled(running)
        async with browser(folder) as page:
            await sign_in(page, running, path=f"/datasets/{dataset}")
            yield running, page, dataset, part


COUNTS = """(() => {
    const root = document.querySelector("[data-threshold]"), fresh = root.cloneNode(true);
    for (const select of fresh.querySelectorAll("select")) select.replaceChildren();
    fresh.querySelector("[data-slider]").value = 0.59;
    root.replaceWith(fresh);
    const falling = (many, few) => [...Array(60).fill(many), ...Array(41).fill(few)];
    const counts = [{ boxes: 4, answers: falling(5, 2), right: falling(3, 2) }];
    const sets = { test: [], "cross-validation": [] };
    const reply = { labels: ["disc"], exclusive: false, sets, pictures: 9, counts };
    window.fetch = async () => ({ ok: true, json: async () => reply });
    const script = document.createElement("script");
    script.src = document.querySelector("script[src*=report]").src;
    document.head.append(script);
})()"""
"""Run the script of the page again, with what a detector has."""


async def looked(page: Page, name: str, result: dict[str, list[str]]) -> None:
    """Record accessibility faults of a page, and its overflow on a screen of 320 pixels."""
    await page.until("document.readyState === 'complete'")
    result[name] = await faults(page)
    await page.size(320, 700, phone=True)
    if wider := await page.overflow():
        result[name].append(f"{wider} pixels too wide for 320")
    await page.size(1280, 900)


async def unseen_pictures_are_recognized(running: CloudProcess, part: str, folder: Path) -> None:
    """Start the machine: it loads the model as the page has configured it."""
    async with running.client() as client:
        secret = (await client.call(APP, "", "get_robot_part", id=part))["part"]["secret"]
    os.mkdir(folder)
    credentials = {"id": part, "secret": secret, "app_address": f"http://{running.address}"}
    environment = {**os.environ, "MACHINE_HOME": str(folder / "home")}
    chance = random.Random(99)
    async with (
        server(folder, {"cloud": credentials}, "-disable-mdns", env=environment) as machine,
        Channel(machine.address, credentials=ApiKey(*running.key)) as channel,
    ):
        for label in ("green", "red", "green", "red"):
            answers = await classified(ApiClient(channel), encoded(chance, label), "paint")
            assert answers[0]["class_name"] == label


async def test_from_labels_to_a_machine(tmp_path: Path) -> None:
    async with trained(tmp_path) as (running, page, dataset, part):
        problems: dict[str, list[str]] = {}
        home = f"http://{running.address}"
        for left, label in ((1, "red"), (0, "green")):
            await page.fill("[action$=add-label] [name=label]", label)
            await page.click("[action$=add-label] button")
            await page.until(f"document.querySelectorAll('td.name .muted').length === {left}")  # labels not listed
        await page.goto(f"{home}/training/new?dataset={dataset}")
        await page.until_text("the label 'green' has 9 pictures, 1 more needed", "#missing")
        await page.click("[name=type][value='3']")  # each choice is checked at once
        await page.until_text("the label 'green' has 0 pictures, 10 more needed", "#missing")
        assert await page.texts("fieldset label [data-checked]") == ["0 pictures, 10 more needed"] * 2
        await page.click("[name=type][value='1']")
        await page.until_text("the label 'green' has 9 pictures, 1 more needed", "#missing")
        await page.press("ArrowUp")  # the keyboard still changes the type that was clicked
        await page.until_text("the label 'red' has 0 pictures, 10 more needed", "#missing")
        await page.click("[name=type][value='1']")
        await page.click("[name=label][value=green]")
        await page.until_text("needs 2 or more labels, and the job names 1", "#missing")
        await page.click("[name=label][value=green]")
        await page.until_text("the label 'green' has 9 pictures, 1 more needed", "#missing")
        page.expect("409")
        await page.click("button.primary")
        await page.until_text("the label 'green' has 9 pictures, 1 more needed", "[role=alert]")
        await looked(page, "form", problems)

        await page.goto(f"{home}/datasets/{dataset}")
        await page.click("a.primary")
        await page.until("document.querySelector('.palette li') && document.querySelector('[data-image]').complete")
        width = await page.evaluate("document.querySelector('[data-image]').getBoundingClientRect().width")
        assert width >= 600, "a picture of 24 pixels fills the page"
        await page.press("2")
        await page.press("b")
        await page.until_text("green", ".box-list")
        await page.until("document.querySelector('[data-saved]').dataset.saved === 'saved'")

        await page.goto(f"{home}/training/new?dataset={dataset}")
        await page.until_text("Ready to train", "#missing")
        await page.fill("[name=name]", "paint")
        await page.click("button.primary")
        await page.until("location.pathname.startsWith('/training/') && location.pathname !== '/training/new'")
        job = (await page.path()).rpartition("/")[2]
        await page.until_text("completed", "#job-state", limit=PATIENCE)
        await page.until_text("test accuracy", "#curves")
        await page.until_text("the model is complete", "#log")
        assert await page.evaluate("document.querySelectorAll('#curves polyline').length") == 1
        numbers = await page.evaluate(
            "[...document.querySelectorAll('[data-seq]')].map((one) => Number(one.dataset.seq))"
        )
        assert numbers == sorted(set(numbers))
        await looked(page, "job", problems)

        await page.goto(f"{home}/training/{job}/report")
        await page.until_text("Precision 100 %", "[data-result]")
        await page.select("[data-set]", "cross-validation")
        await page.evaluate("document.querySelector('[data-slider]').value = 1")
        await page.evaluate("document.querySelector('[data-slider]').dispatchEvent(new Event('input'))")
        await page.until_text("1.00", "[data-value]")
        assert await page.evaluate("document.querySelectorAll('.matrix tbody td').length") == 4
        await page.evaluate(COUNTS)
        await page.until_text("Precision 60 %: 3 of 5 answers are right. Recall 75 %: 3 of 4 boxes", "[data-result]")
        assert await page.text("[data-set]") == "9 of the test"
        await page.evaluate("document.querySelector('[data-slider]').value = 0.6")
        await page.evaluate("document.querySelector('[data-slider]').dispatchEvent(new Event('input'))")
        await page.until_text("Precision 100 %: 2 of 2 answers are right. Recall 50 %: 2 of 4 boxes", "[data-result]")
        await looked(page, "report", problems)

        await page.goto(f"{home}/training")
        await page.until_text("paint 1")
        await looked(page, "jobs", problems)

        await page.goto(f"{home}/training/notifications")
        await page.fill("[name=value]", "ftp://receiver.test")
        page.expect("400")
        await page.click("button.primary")
        await page.until_text("http", "[role=alert]")
        await page.fill("[name=value]", "https://receiver.test/hook")
        await page.click("button.primary")
        await page.until_text("https://receiver.test/hook", "td.name")
        await looked(page, "notifications", problems)
        await page.click("td button")
        await page.until_text("No notifications yet")

        await page.goto(f"{home}/training")
        await page.click("td.name a")
        await page.click("#job-state a:nth-of-type(2)")
        await page.until_text("Use on a machine")
        await looked(page, "versions", problems)
        await page.click("button.primary")
        await page.until_text("Nothing is saved yet")
        shown = await page.text("main")
        for line in ('"version": "1"', "${packages.ml_model.paint}/model.onnx", '"mlmodel_name": "paint-model"'):
            assert line in shown, shown
        async with running.client() as client:
            before = await client.call(APP, "", "get_robot_part", id=part)
            assert not before["part"]["robot_config"].get("packages")
            await page.click("button.primary")
            await page.until("!!document.querySelector('form[data-editor]')")
            after = (await client.call(APP, "", "get_robot_part", id=part))["part"]["robot_config"]
        assert after["packages"][0]["package"] == f"{running.facts['organization']}/paint"
        assert [service["name"] for service in after["services"]] == ["paint-model", "paint"]
        await unseen_pictures_are_recognized(running, part, tmp_path / "machine")
        assert {name: faulty for name, faulty in problems.items() if faulty} == {}
