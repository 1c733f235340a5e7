"""Every page of an empty cloud and of a cloud with an object of every kind, reached by links or opened by forms.

Takes about 20 s: two clouds, a machine, and some forty pages, each in two sizes and two color schemes.
"""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import trio
from PIL import Image

from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.looking import faults, walk, without_ids
from tests.e2e.browser.page import Page
from tests.e2e.browser.signing import sign_in
from tests.e2e.browser.writing import press_save, write
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.cloud.test_command import Terminal
from tests.e2e.server.process import server

pytestmark = needs_chromium
APP = "viam.app.v1.AppService"
DATA = "viam.app.data.v1.DataService"
SETS = "viam.app.dataset.v1.DatasetService"
SYNC = "viam.app.datasync.v1.DataSyncService"
START = datetime(2026, 1, 1, tzinfo=UTC)
LONG = "a-name-that-is-longer-than-usual-names-of-machines"
DOCUMENT: dict[str, Any] = {
    "components": [
        {"name": "pi", "api": "rdk:component:board", "model": "fake"},
        {"name": "air", "api": "rdk:component:sensor", "model": "fake"},
        {"name": "left", "api": "rdk:component:motor", "model": "fake", "attributes": {"max_rpm": "fast"}},
        {"name": LONG, "api": "rdk:component:motor", "model": "nothing"},
    ],
    "triggers": [
        {
            "name": LONG,
            "event": {"type": "part_offline"},
            "notifications": [{"type": "webhook", "value": f"http://{LONG}.test/{LONG}/{LONG}"}],
        },
        {"name": "wrong", "event": {"type": "part_onlin"}},
    ],
}


def kind(url: str) -> str | None:
    """Return the pattern of a page, equal for pages of the same kind; None for targets that are not pages."""
    result = without_ids(url)
    path = result.partition("?")[0]
    return (
        None
        if path.startswith(("/files/", "/packages/", "/data/export", "/static/")) or "/download" in path
        else result
    )


def described(result: dict[str, list[str]]) -> str:
    return "\n".join(f"{name}: {fault}" for name, faults in result.items() for fault in faults)


async def looked(page: Page, name: str, result: dict[str, list[str]]) -> None:
    """Record the faults of a page that a form has opened."""
    await page.until("document.readyState === 'complete'")
    result[name] = await faults(page)


async def test_empty_pages(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, browser(tmp_path) as page:
        page.expect("401|404")
        home = f"http://{running.address}/"
        values: dict[str, list[str]] = {}
        await page.goto(home)
        await looked(page, "log in", values)
        await page.goto(home)
        await page.fill("[name=id]", "x")
        await page.fill("[name=key]", "x")
        await page.click("form button")
        await page.until_text("wrong")
        await looked(page, "log in again", values)
        await sign_in(page, running)
        await by_keyboard(page)
        values |= await walk(page, home, kind)
        await page.goto(f"{home}no/such/page")
        await looked(page, "an error", values)
        assert {
            "/",
            "/fragments",
            "/data",
            "/data?view,readings",
            "/datasets",
            "/sql",
            "/training",
            "/triggers",
            "/modules",
            "/releases",
            "/rollouts",
            "/rollouts/versions",
            "/keys",
            "/audit",
        } <= set(values)
        assert not described(values), described(values)


async def test_pages_with_all_kinds_of_content(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud") as running, browser(tmp_path) as page:
        part = await filled(running)
        await publish(running, tmp_path)
        (tmp_path / "machine").mkdir()
        credentials = {"id": part["id"], "secret": part["secret"], "app_address": f"http://{running.address}"}
        async with server(tmp_path / "machine", {"cloud": credentials}, "-disable-mdns"):
            await sign_in(page, running, path=f"/machines/{part['id']}")
            await page.until("document.querySelector('.graph a') && document.querySelector('.sensor')")
            values = {"a live machine": await faults(page)}
            page.expect("409|400")
            await by_forms(page, running, part["id"], values)
            values |= await walk(page, f"http://{running.address}/", kind)
        assert not described(values), described(values)
        assert {"/machines/*", "/machines/*/config", "/machines/*/history", "/machines/*/logs"} <= set(values)
        assert {"/datasets/*", "/training/new?dataset", "/training"} <= set(values)
        assert {"/machines/*/triggers", "/machines/*/triggers/deliveries/*", "/modules/*", "/fragments/*"} <= set(
            values
        )


async def by_keyboard(page: Page) -> None:
    """Check that the first Tab press skips the navigation, and create a machine without a mouse."""
    await page.until("document.readyState === 'complete'")
    await page.press("Tab")
    assert await page.evaluate("document.activeElement.className") == "skip"
    await page.press("Enter")
    for _ in range(20):
        await page.press("Tab")
        assert await page.evaluate("!!document.activeElement.closest('main')")
        if await page.evaluate("document.activeElement.matches('details[open] [name=name]')"):
            break
    await page.type("by hand")
    await page.press("Enter")
    await page.until_text("by hand was created")
    await page.goto(str(await page.evaluate("document.querySelector('.crumbs a:last-child').href")))
    await page.click("details:last-of-type summary")  # delete it again: this walk is of an empty cloud
    await page.fill("[action$=delete] [name=name]", "by hand")
    await page.press("Enter")
    await page.until_path("/")


async def publish(running: CloudProcess, folder: Path) -> None:
    """Publish a version with a long name, roll it out, and publish another."""
    person = Terminal(running, folder / "home")
    key = {"MACHINE_CLOUD": f"http://{running.address}", "MACHINE_CLOUD_KEY_ID": running.key[0]}
    signed_in: dict[str, Any] = {**key, "MACHINE_CLOUD_KEY": running.key[1]}
    keys, version = ("--keys", str(folder / "keys")), f"1.0.0-{LONG}"
    file = folder / "program"
    file.write_bytes(b"program")
    identity = ("--program", "machine-server", "--platform", "linux/aarch64", "--version")
    await person("releases", "init", *keys, **signed_in)
    for name in (version, "1.0.0"):
        await person("releases", "upload", str(file), *keys, *identity, name, **signed_in)
    start = ("releases", "rollout", "start", "machine-server", version, "--percent", "10", "--tag", LONG)
    await person(*start, "--stop-after", "2", **signed_in)


async def filled(running: CloudProcess) -> dict[str, Any]:
    """Add an object of every kind to the cloud; return the part that a machine can use."""
    async with running.client() as client:

        async def call(method: str, service: str = APP, /, **arguments: Any) -> Any:
            return await client.call(service, "", method, **arguments)

        place, organization = running.facts["location"], running.facts["organization"]
        for name in ("rover", LONG):
            robot = await call("new_robot", name=name, location=place)
        part: dict[str, Any] = (await call("get_robot_parts", robot_id=robot))[0]
        await call("new_robot_part", robot_id=robot, part_name="second")
        await call("update_robot_part", id=part["id"], name="", robot_config_json=json.dumps(DOCUMENT))
        await call("create_fragment", name=LONG, organization_id=organization, config={"components": []})
        await call("update_organization", organization_id=organization, public_namespace="acme")
        await call("create_module", organization_id=organization, name=LONG)
        picture = io.BytesIO()
        Image.new("RGB", (320, 240), "teal").save(picture, "PNG")
        times = {"time_requested": START}
        sent = await call(
            "data_capture_upload",
            SYNC,
            metadata={"part_id": part["id"], "component_name": LONG, "type": "BINARY_SENSOR", "tags": [LONG]},
            sensor_contents=[{"metadata": times, "binary": picture.getvalue()}],
        )
        dataset = await call("create_dataset", SETS, name=LONG, organization_id=organization)
        content = {"binary_data_ids": [sent["binary_data_id"]], "dataset_id": dataset}
        await call("add_binary_data_to_dataset_by_ids", DATA, **content)
        readings = [
            {"metadata": {"time_requested": START + timedelta(seconds=at)}, "struct": {"readings": {LONG: float(at)}}}
            for at in range(30)
        ]
        metadata = {"part_id": part["id"], "component_name": LONG, "method_name": "Readings", "type": "TABULAR_SENSOR"}
        await call("data_capture_upload", SYNC, metadata=metadata, sensor_contents=readings)
        grant = {
            "authorization_id": "organization_operator",
            "resource_type": "organization",
            "resource_id": organization,
        }
        await call("create_key", authorizations=[grant], name=LONG)
        return part


async def by_forms(page: Page, running: CloudProcess, part: str, result: dict[str, list[str]]) -> None:
    """Visit the pages that only forms open."""
    here = f"http://{running.address}/machines/{part}"
    await page.goto(f"{here}/triggers")
    await page.click("#trigger-1 summary")
    await page.click("#trigger-1 [value=test]")
    await page.until_text("failed", "#delivery-log")
    await looked(page, "a test of a trigger", result)
    await page.goto(f"{here}/config")
    text = await page.value("#document")
    await write(page, text.replace("fast", "faster"))
    await page.until_text("faster", "#findings")
    await looked(page, "an editor with mistakes", result)
    await page.click("button[value=review]")
    await page.until_text("Nothing is saved yet")
    await looked(page, "a review", result)
    await press_save(page)
    await page.until_text("Revision 3")
    await page.goto(f"{here}/config")
    changed = {**DOCUMENT, "components": DOCUMENT["components"][:2]}
    async with running.client() as client:
        await client.call(APP, "", "update_robot_part", id=part, name="", robot_config_json=json.dumps(changed))
    await write(page, text.replace("fast", "fastest"))
    await page.click("button[value=review]")
    await page.until_text("Someone else has saved")
    await looked(page, "a change saved by another user", result)
    await page.goto(f"http://{running.address}/data")
    await page.click(".tile input[type=checkbox]")
    await page.click("button.danger")
    await page.until_text("Delete 1 file?")
    await looked(page, "deleting data", result)
    await page.goto(here)
    await page.click("[action$=setup] button")
    await page.until_text("Save this on the computer")
    await looked(page, "how a computer joins", result)
    await page.goto(f"http://{running.address}/keys")
    await page.click("#new")
    await page.fill("form[action='/keys'] [name=name]", LONG)
    await page.click("form[action='/keys'] button")
    await page.until("document.querySelector('[data-copy]') || document.querySelector('pre')")
    await looked(page, "a new key", result)
    await trio.lowlevel.checkpoint()
