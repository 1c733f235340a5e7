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
LONG = "a-name-that-somebody-has-chosen-who-likes-long-names"


def kind(url: str) -> str | None:
    """Return one pattern for each API and one for a broken resource; None for targets that are not pages."""
    path = urlsplit(url).path
    if path.startswith("/resources/"):
        return None if path.endswith((".json", "/image")) else LONG if LONG in path else path.rpartition("/")[0]
    return path if path in ("/", "/logs") else None


async def test_every_page_of_a_machine(tmp_path: Path) -> None:
    document = json.loads(BENCH.read_text())
    document["components"].append({"name": LONG, "api": "rdk:component:motor", "model": "nothing-of-the-kind"})
    (tmp_path / "machine").mkdir()
    async with server(tmp_path / "machine", document, "-disable-mdns") as running, browser(tmp_path) as page:
        page.expect("404")
        await page.goto(f"http://{running.address}/")
        await page.until_text("live", ".link")
        found = await walk(page, f"http://{running.address}/", kind)
        await page.goto(f"http://{running.address}/no/such/page")
        found["an error"] = await faults(page)
        assert len(found) > 20, list(found)
        told = "\n".join(f"{name}: {fault}" for name, each in found.items() for fault in each)
        assert not told, told
