"""Pictures of every page: `python -m tests.e2e.browser.gallery FOLDER [--scene NAME] [--page PART_OF_ITS_NAME]`.

With `--weigh`, a line for each page instead: kilobytes of its first load with an empty cache, as transferred, those of
scripts among them, and milliseconds until the page can be used (DOMContentLoaded).

Each scene starts the programs with one kind of content: nothing, typical content, 200 machines, everything broken.
Each page is drawn on a desktop and a phone, light and dark; the file is `SCENE-PAGE-SIZE-SCHEME.png`.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlencode

import trio

from rpc.api.cloud_v1 import ALERTS, FLEET
from tests.e2e.browser.chromium import browser
from tests.e2e.browser.following import followers
from tests.e2e.browser.page import Page
from tests.e2e.browser.signing import sign_in
from tests.e2e.browser.test_alerts import measured as warmed
from tests.e2e.browser.test_rollouts import held, with_fragment
from tests.e2e.browser.test_walk import APP, SYNC, filled, publish
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.server.process import server

BENCH: Final = Path(__file__).parents[3] / "examples" / "bench.json"
SIZES: Final = {"desktop": (1440, 900), "phone": (360, 780), "wide": (2560, 1300)}
SHOTS: Final = (("desktop", "light"), ("desktop", "dark"), ("phone", "light"), ("phone", "dark"))
MANY: Final = 200  # machines
SETTLED: Final = 60.0  # seconds until a page shows everything
GRAPH: Final = "document.querySelector('.graph a')"
CARDS: Final = (
    "document.querySelectorAll('[data-card]').length > 3 && !document.querySelector('[data-picture=none]')"
    " && document.querySelector('.line').innerText.includes('ms')"
)
PICTURES: Final = "[...document.images].every((each) => each.complete)"
TROUBLE: Final = "document.querySelector('#counts').innerText.includes('degraded')"
EDITORS: Final = (
    "[...document.querySelectorAll('#document, [data-island=sql] textarea')]"
    ".every((each) => !each.checkVisibility() || document.querySelector('.cm-editor'))"
    " && (!document.querySelector('form[data-editor]') || !!document.querySelector('.list nav'))"
)
"""Every text that an editor replaces is replaced: the script of an editor is loaded after the page."""
FIELDS: Final = "document.querySelector('main').textContent.includes('data.readings.humidity')"
"""The page SQL has received the names of fields."""
STILL: Final = r"""
(() => {
  for (const time of document.querySelectorAll('time[data-ago]')) {
    time.removeAttribute('data-ago');
    time.textContent = '5 s';
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode, still = text.data.replace(/\d+ (?:s|min|h)(?= ago)/gu, '5 s')
      .replace(/[/](?:dev[/]shm|tmp)[/]\S*/gu, '/srv/machine/machine.json');
    if (still !== text.data) text.data = still;
  }
  return true;
})()
"""
"""Times that pass and paths of tests are replaced: a longer one breaks into another line, and moves all below it."""
QUIET: Final = "![...document.querySelectorAll('[aria-busy=true]')].some((each) => each.checkVisibility())"
"""No plot that is seen waits for its numbers."""
DRAWN: Final = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
_WEIGHT: Final = """
(() => {
  const page = performance.getEntriesByType("navigation")[0], rest = performance.getEntriesByType("resource")
    .filter((each) => each.startTime < page.loadEventEnd + 100)
    .filter((each) => !/[/](viam|live|data[/]series|statistics[/]series)/u.test(each.name));
  const sum = (list) => list.reduce((size, each) => size + each.transferSize, 0);
  const scripts = rest.filter((each) => /[.]js$/u.test(each.name));
  return [page.transferSize + sum(rest), sum(scripts), page.domContentLoadedEventEnd];
})()
"""
BROKEN: Final[Mapping[str, Any]] = {
    "components": [
        {"name": "left", "api": "rdk:component:motor", "model": "fake", "attributes": {"max_rpm": "fast"}},
        {"name": "eye", "api": "rdk:component:camera", "model": "webcam", "attributes": {"video_path": "/dev/no"}},
        {"name": "arm", "api": "rdk:component:arm", "model": "acme:robots:arm"},
        {
            "name": "rover",
            "api": "rdk:component:base",
            "model": "wheeled",
            "attributes": {"left": ["left"], "right": ["left"], "wheel_circumference_mm": 200, "width_mm": 300},
        },
    ],
}


@dataclass(frozen=True)
class Gallery:
    """A browser that draws the pages of one scene into a folder."""

    page: Page
    folder: Path
    scene: str
    only: str  # part of the names of the pages to draw
    weighed: bool

    async def draw(self, name: str, url: str, ready: str = "true", *, opened: str = "") -> None:
        """Draw a page in every size and color scheme, once the expression `ready` is true, with details opened."""
        if self.only not in name:
            return
        if self.weighed:
            if not opened:  # the first load does not depend on details that are opened afterwards
                await self._weigh(name, url, ready)
            return
        await self.page.goto(url)
        if opened:
            await self.page.evaluate(
                f"document.querySelectorAll({json.dumps(opened)}).forEach((one) => one.open = true)"
            )
        await self.page.until(f"({ready}) && {EDITORS} && {QUIET}", limit=SETTLED)
        await self._shoot(name)

    async def draw_result(self, name: str, url: str, fields: Mapping[str, str], button: str) -> None:
        """Draw the page that a form leads to."""
        if self.only not in name or self.weighed:
            return
        await self.page.goto(url)
        await self.page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
        for field, text in fields.items():
            await self.page.fill(field, text)
        await self.page.click(button)
        await self.page.until("document.readyState === 'complete' && document.querySelector('[data-copy]')")
        await self._shoot(name)

    async def _shoot(self, name: str) -> None:
        for size, scheme in SHOTS:
            await self.page.appearance(scheme)
            width, height = SIZES[size]
            await self.page.size(width, height, phone=size == "phone")
            await self.page.until(QUIET, limit=SETTLED)
            await self.page.evaluate(STILL)
            await self.page.until(DRAWN)
            await self.page.screenshot(self.folder / f"{self.scene}-{name}-{size}-{scheme}.png")

    async def _weigh(self, name: str, url: str, ready: str) -> None:
        await self.page.call("Network.setCacheDisabled", cacheDisabled=True)
        await self.page.goto(url)
        await self.page.until(ready, limit=SETTLED)
        total, scripts, usable = await self.page.evaluate(_WEIGHT)
        print(f"| {name} | {total / 1000:.0f} | {scripts / 1000:.0f} | {usable:.0f} |", flush=True)


async def nothing(gallery: Gallery, folder: Path) -> None:
    """Draw the pages of an empty cloud."""
    async with cloud(folder / "cloud") as running:
        home = f"http://{running.address}"
        await gallery.draw("login", home)
        await sign_in(gallery.page, running)
        await of_cloud(gallery, home)
        form = "form[action='/machines']"
        await gallery.draw_result("machine-new", home, {f"{form} [name=name]": "rover"}, f"{form} button")


async def typical(gallery: Gallery, folder: Path) -> None:
    """Draw the pages of a cloud with an object of each kind, and of the machine that joined it."""
    async with cloud(folder / "cloud") as running:
        part = await filled(running)
        await publish(running, folder)
        await measured(running, part["id"])
        async with joined(running, folder, part, json.loads(BENCH.read_text())) as address:
            home = f"http://{running.address}"
            await sign_in(gallery.page, running)
            await of_cloud(gallery, home)
            await of_part(gallery, home, part["id"])
            await opened(gallery, home, part["id"])
            await asked(gallery, home)
            await log_in(gallery.page, f"http://{address}/", running.key)
            await of_machine(gallery, f"http://{address}")
        await gallery.page.goto(f"{home}/machines/{part['id']}")
        await gallery.page.until("document.querySelector('main').innerText.includes('offline')")
        for name in ("", "/control", "/statistics", "/connect"):
            await gallery.draw(f"offline{name.replace('/', '-')}", f"{home}/machines/{part['id']}{name}")


async def opened(gallery: Gallery, home: str, part: str) -> None:
    """Draw pages with their forms and details open, and pages that forms and links lead to."""
    await gallery.draw("alert-rules", f"{home}/alerts/rules", opened="details.new")
    await gallery.draw("fragments-new", f"{home}/fragments", opened="details.new")
    await gallery.draw("modules-new", f"{home}/modules", opened="details.new")
    await gallery.draw("keys-open", f"{home}/keys", opened="details")
    await gallery.draw("data-filters", f"{home}/data?view=readings", opened="details.more")
    await gallery.draw("machine-history-changes", f"{home}/machines/{part}/history", opened="details")
    rates = "document.querySelector('.charts canvas')"
    await gallery.draw("machine-logs-rates", f"{home}/machines/{part}/logs", rates, opened="details.more")
    for name, path in (("rollout", "/releases/"), ("module", "/modules/"), ("fragment", "/fragments/")):
        await gallery.page.goto(f"{home}{path.rstrip('/')}")
        link = await gallery.page.evaluate(f"document.querySelector('main a[href^=\"{path}\"]').href")
        await gallery.draw(name, link)
    await gallery.draw_result("keys-created", f"{home}/keys", {"details.new [name=name]": "bot"}, "details.new button")


async def asked(gallery: Gallery, home: str) -> None:
    """Draw answers of the page SQL: a table, and a mistake."""
    query = (
        "SELECT date_trunc('hour', time_requested) AS hour, AVG(data.readings.temperature) AS celsius,\n"
        "  MAX(data.readings.humidity) AS humidity\nFROM readings WHERE component_name = 'climate' GROUP BY ALL"
    )
    for name, text in (("answer", query), ("mistake", query.replace("component_name", "componet_name"))):
        await gallery.draw(f"sql-{name}", f"{home}/sql?{urlencode({'query': text})}", FIELDS)


async def many(gallery: Gallery, folder: Path) -> None:
    """Draw the list of a cloud with 200 machines."""
    async with cloud(folder / "cloud") as running:
        async with running.client() as client:
            for number in range(MANY):
                await client.call(APP, "", "new_robot", name=f"press-{number:03}", location=running.facts["location"])
        await sign_in(gallery.page, running)
        home = f"http://{running.address}"
        await gallery.draw("machines", f"{home}/")
        await gallery.draw("machines-columns", f"{home}/?dense=yes", opened="details.column-choice, details.new")
        async with running.client() as client:
            listed = (await client.call(FLEET, "", "list_fleet_machines", limit=20))["machines"]
            for number, machine in enumerate(listed):
                tags = ["press", "hall 1", "batch 7"][: number % 3 + 1]
                await client.call(FLEET, "", "add_machine_tags", machine_id=machine["id"], tags=tags)
            await client.call(FLEET, "", "set_fleet_view", name="Batch 7", query="tag=press", shared=True)
            ids = [machine["id"] for machine in listed]
            work = {"kind": "set_value", "path": "components.arm.attributes.speed", "value_json": "3"}
            failed = await client.call(FLEET, "", "start_fleet_job", machine_ids=ids, work=work)
            work = {"kind": "pin_version", "program": "machine-server", "version": "1.4.0"}
            job = await client.call(FLEET, "", "start_fleet_job", every=True, work=work)
        await gallery.draw("machines-tagged", f"{home}/?tag=press")
        done = "!/running|waiting/u.test(document.querySelector('#job-state').innerText)"
        await gallery.draw("fleet-refused", f"{home}/fleet/{failed}", done)
        await gallery.draw("fleet-job", f"{home}/fleet/{job}", done)
        await gallery.draw("fleet-list", f"{home}/fleet")
        await gallery.draw("audit", f"{home}/audit")
        await _draw_preview(gallery, home)
        await _draw_alerts(gallery, running, [machine["id"] for machine in listed[:3]])


async def _draw_alerts(gallery: Gallery, running: CloudProcess, machines: list[str]) -> None:
    """Draw a firing alert, an acknowledged one, and silences of a rule and of a machine."""
    organization, home = running.facts["organization"], f"http://{running.address}"
    condition = {"path": "celsius", "comparison": "gt", "threshold": -15}
    until = datetime.now(UTC) + timedelta(hours=4)
    async with running.client() as client:
        rules = []
        for name, path in (("Freezer warm", "celsius"), ("Air of hall 1 is too humid for the paint", "humidity")):
            rule = {"name": name, "kind": "reading", "condition": {**condition, "path": path}}
            rules.append(await client.call(ALERTS, "", "set_alert_rule", organization_id=organization, rule=rule))
        silences = {"rule_id": rules[1]}, {"machine_id": machines[2]}
        for covered in silences:
            await client.call(ALERTS, "", "silence_alerts", organization_id=organization, until=until, **covered)
        for machine in machines:
            part = (await client.call(APP, "", "get_robot_parts", robot_id=machine))[0]["id"]
            await warmed(client, part, -3.0)
        await gallery.page.goto(f"{home}/alerts")
        await gallery.page.until("document.querySelectorAll('.open-alerts > li').length === 3")
        alert = (await client.call(ALERTS, "", "list_alerts"))[0]["id"]
        await client.call(ALERTS, "", "acknowledge_alert", alert_id=alert)
    await gallery.draw("alerts", f"{home}/alerts", opened="#board li:last-child .silence")
    await gallery.draw("alert", f"{home}/alerts/{alert}")


async def _draw_preview(gallery: Gallery, home: str) -> None:
    """Draw the choice of work for all machines, and its preview."""
    if gallery.only not in "fleet-preview" or gallery.weighed:
        return
    await gallery.page.goto(f"{home}/")
    await gallery.page.click("[data-all]")
    await gallery.page.until("!!document.querySelector('[data-work]')")
    await gallery.page.select("[name=kind]", "pin_version")
    await gallery.page.fill("[name=version]", "1.5.0")
    await gallery._shoot("fleet-new")
    await gallery.page.click("[data-work] button")
    await gallery.page.until("!!document.querySelector('#preview')")
    await gallery._shoot("fleet-preview")


async def rolling(gallery: Gallery, folder: Path) -> None:
    """Draw a rollout of a fragment to 12 machines: its form, while it proceeds, and after it has stopped."""
    async with cloud(folder / "cloud") as running:
        home = f"http://{running.address}"
        fragment = await with_fragment(running)
        async with followers(running, [f"press-{number:02}" for number in range(12)], fragment) as machines:
            await held(running, fragment)
            await sign_in(gallery.page, running)
            what = f"{running.facts['organization']}/fragment/{fragment}/"
            form = f"{home}/rollouts/new?{urlencode({'what': what, 'revision': '2', 'stages': '25, 50, 100'})}"
            await gallery.draw("rollout-new", form)
            await gallery.page.goto(form)
            await gallery.page.click(".new-rollout button")
            await gallery.page.until_text("12 of 12 machines are selected")
            if gallery.only in "rollout-preview":
                await gallery._shoot("rollout-preview")
            for machine in machines:
                machine.bad = "2"
            await gallery.page.click("#preview button")
            await gallery.page.until_text("Watches 3 machines of the stage")
            address = await gallery.page.evaluate("location.href")
            await gallery.draw("rollouts-open", f"{home}/rollouts")
            await gallery.draw("rollout-open", address)
            await gallery.page.until_text("3 machines failed, more than 2", limit=90)
            await gallery.draw("rollouts-stopped", f"{home}/rollouts")
            await gallery.draw("rollout-stopped", address)
            await gallery.draw("rollout-versions", f"{home}/rollouts/versions")
            await gallery.draw("fragment-held", f"{home}/fragments/{fragment}")


async def broken(gallery: Gallery, folder: Path) -> None:
    """Draw the pages of a machine of which nothing works."""
    async with cloud(folder / "cloud") as running:
        part = await filled(running)
        async with joined(running, folder, part, BROKEN) as address:
            home = f"http://{running.address}"
            await sign_in(gallery.page, running)
            await gallery.draw("machines", home, TROUBLE)
            await of_part(gallery, home, part["id"])
            await log_in(gallery.page, f"http://{address}/", running.key)
            await of_machine(gallery, f"http://{address}")


SCENES: Final[Mapping[str, Callable[[Gallery, Path], Awaitable[None]]]] = {
    "nothing": nothing,
    "typical": typical,
    "many": many,
    "rolling": rolling,
    "broken": broken,
}


async def of_cloud(gallery: Gallery, home: str) -> None:
    """Draw the pages that each cloud has."""
    await gallery.draw("machines", f"{home}/")
    for name in (
        "fragments",
        "data",
        "datasets",
        "training",
        "alerts",
        "triggers",
        "modules",
        "rollouts",
        "releases",
        "keys",
        "audit",
        "sql",
    ):
        has_fields = name == "sql" and gallery.scene == "typical"
        await gallery.draw(name, f"{home}/{name}", FIELDS if has_fields else PICTURES)
    await gallery.draw("readings", f"{home}/data?view=readings")
    await gallery.draw("fleet-logs", f"{home}/logs")


async def of_part(gallery: Gallery, home: str, part: str) -> None:
    """Draw the pages of a machine in the cloud."""
    await gallery.draw("machine", f"{home}/machines/{part}", GRAPH)
    await gallery.draw("machine-control", f"{home}/machines/{part}/control", CARDS)
    for name in ("statistics", "config", "history", "logs", "triggers", "connect"):
        await gallery.draw(f"machine-{name}", f"{home}/machines/{part}/{name}")


async def log_in(page: Page, home: str, key: tuple[str, str]) -> None:
    """Log in to the machine's own pages with a key of the cloud."""
    await page.goto(home)
    await page.fill("[name=id]", key[0])
    await page.fill("[name=key]", key[1])
    await page.click("form button")
    await page.until(GRAPH)


async def of_machine(gallery: Gallery, home: str) -> None:
    """Draw the pages that a machine serves itself."""
    await gallery.draw("own-overview", f"{home}/", GRAPH)
    await gallery.draw("own-control", f"{home}/control", CARDS)
    await gallery.draw("own-statistics", f"{home}/statistics", "document.querySelector('.charts canvas')")
    await gallery.draw("own-logs", f"{home}/logs")
    await gallery.page.goto(f"{home}/")
    for kind in ("base", "camera"):
        link = await gallery.page.evaluate(f"document.querySelector('a[href*=\":{kind}/\"]')?.href || ''")
        if link:
            await gallery.draw(f"own-{kind}", link)


@asynccontextmanager
async def joined(
    running: CloudProcess, folder: Path, part: Mapping[str, Any], document: Mapping[str, Any]
) -> AsyncIterator[str]:
    """Run a machine of the cloud with a configuration, and yield the address of its port."""
    async with running.client() as client:
        text = json.dumps(document)
        await client.call(APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=text)
    (folder / "machine").mkdir()
    credentials = {"id": part["id"], "secret": part["secret"], "app_address": f"http://{running.address}"}
    async with server(folder / "machine", {"cloud": credentials}, "-disable-mdns") as machine:
        yield machine.address
        await machine.stop()  # it says goodbye, and is offline at once


async def measured(running: CloudProcess, part: str) -> None:
    """Upload a day of temperatures."""
    start = datetime.now(UTC) - timedelta(days=1)
    readings = [
        {
            "metadata": {"time_requested": start + timedelta(minutes=minute)},
            "struct": {
                "readings": {
                    "temperature": round(21 + 3 * math.sin(minute / 230) + math.sin(minute * 7) / 5, 2),
                    "humidity": round(48 - 5 * math.sin(minute / 230), 1),
                }
            },
        }
        for minute in range(1440)
    ]
    metadata = {"part_id": part, "component_name": "climate", "method_name": "Readings", "type": "TABULAR_SENSOR"}
    async with running.client() as client:
        await client.call(SYNC, "", "data_capture_upload", metadata=metadata, sensor_contents=readings)


async def draw(
    folder: Path, scenes: Mapping[str, Callable[[Gallery, Path], Awaitable[None]]], options: argparse.Namespace
) -> None:
    """Draw pages of scenes into a folder."""
    for scene, run in scenes.items():
        with TemporaryDirectory(dir="/dev/shm") as temporary:
            async with browser(Path(temporary)) as page:
                page.expect(".")
                await run(Gallery(page, folder, scene, options.page, options.weigh), Path(temporary))


def main() -> None:
    """Draw the pages that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scene", choices=SCENES)
    parser.add_argument("--page", default="", help="only pages with this in their name")
    parser.add_argument("--weigh", action="store_true", help="print the weight of each page instead")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    scenes = {options.scene: SCENES[options.scene]} if options.scene else SCENES
    trio.run(draw, options.folder, scenes, options)


if __name__ == "__main__":
    main()
