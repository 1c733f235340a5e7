"""The pages of machine-server: overview, logs, and one resource of each kind on the bench. 26 pages, about 10 s."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

from tests.e2e.browser.chromium import browser, needs_chromium
from tests.e2e.browser.looking import faults, walk
from tests.e2e.server.process import server

pytestmark = needs_chromium
BENCH = Path(__file__).parents[3] / "examples" / "bench.json"
LONG = "a-name-that-is-longer-than-usual-names-of-machines"


def kind(url: str) -> str | None:
    """Return one pattern for each API and one for a broken resource; None for targets that are not pages."""
    path = urlsplit(url).path
    if path.startswith("/resources/"):
        return None if path.endswith((".json", "/image")) else LONG if LONG in path else path.rpartition("/")[0]
    return path if path in ("/", "/control", "/statistics", "/logs") else None


async def test_every_page_of_a_machine(tmp_path: Path) -> None:
    document = json.loads(BENCH.read_text())
    document["components"].append({"name": LONG, "api": "rdk:component:motor", "model": "nothing-of-the-kind"})
    (tmp_path / "machine").mkdir()
    async with server(tmp_path / "machine", document, "-disable-mdns") as running, browser(tmp_path) as page:
        page.expect("404")
        await page.goto(f"http://{running.address}/")
        await page.until_text("live", ".link")
        result = await walk(page, f"http://{running.address}/", kind)
        await page.goto(f"http://{running.address}/no/such/page")
        result["an error"] = await faults(page)
        assert len(result) > 20, list(result)
        reported = "\n".join(f"{name}: {fault}" for name, each in result.items() for fault in each)
        assert not reported, reported
