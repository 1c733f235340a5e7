"""The arrangement of cards that a machine keeps in a file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from rpc.pages.arrangement import SIZE
from runtime.parts.web.arranging import FILE, Arranging
from runtime.parts.web.pages import build
from tests.unit.runtime.parts.web.client import HTML, Browser
from tests.unit.runtime.parts.web.machine_in_memory import MachineInMemory

CARDS = "/control/cards"
ARRANGED = {"hidden": ["component:motor/left"], "order": ["component:sensor/thermometer"]}
ORIGIN = {"origin": "http://rover-7:8080"}


def opened(folder: Path) -> Browser:
    return Browser(build(MachineInMemory(), arranging=Arranging(lambda: folder)))


def content(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def props(browser: Browser) -> dict[str, Any]:
    page = (await browser.get("/control", HTML)).text
    (text,) = re.findall(r'data-props="([^"]*)"', page)
    properties: dict[str, Any] = json.loads(text.replace("&#34;", '"'))
    return properties


async def test_it_is_saved_for_everyone_and_survives_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "pages" / "local"
    browser = opened(folder)
    assert (await props(browser))["cards"] == ""
    assert (await browser.send("POST", CARDS, ORIGIN, json.dumps(ARRANGED).encode())).status == 204
    for other in (browser, opened(folder)):
        assert json.loads((await props(other))["cards"]) == ARRANGED
    assert (await props(browser))["arrange"] == CARDS
    assert content(folder) == [FILE]
    assert folder.stat().st_mode & 0o077 == 0


async def test_another_site_cannot_arrange(tmp_path: Path) -> None:
    browser = opened(tmp_path)
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert (await browser.send("POST", CARDS, headers, json.dumps(ARRANGED).encode())).status == 403
    assert content(tmp_path) == []


@pytest.mark.parametrize("body", [b"{}", b"x" * (SIZE + 10), b'{"hidden": [1], "order": []}'])
async def test_a_wrong_arrangement_is_refused(tmp_path: Path, body: bytes) -> None:
    reply = await opened(tmp_path).send("POST", CARDS, ORIGIN, body)
    assert reply.status == 400
    assert reply.json()["error"]
    assert content(tmp_path) == []


async def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    reply = await opened(tmp_path / "file" / "pages").send("POST", CARDS, ORIGIN, json.dumps(ARRANGED).encode())
    assert reply.status == 503
    assert "the arrangement was not saved" in reply.json()["error"]


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b" " * (SIZE + 1)])
async def test_a_damaged_file_counts_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with capture_logs() as logs:
        assert (await props(opened(tmp_path)))["cards"] == ""
    assert [entry["event"] for entry in logs] == ["the arrangement of cards was not read"]


async def test_a_machine_without_a_folder_leaves_it_to_browsers() -> None:
    browser = Browser(build(MachineInMemory()))
    assert (await props(browser))["arrange"] == ""
    assert (await browser.send("POST", CARDS, ORIGIN, b"{}")).status == 404
