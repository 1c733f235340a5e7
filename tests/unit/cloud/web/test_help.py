"""Help: the documentation as pages, its links and anchors, its search, and the help of each page."""

from __future__ import annotations

import re

import pytest

from cloud.server.memory import MemoryCloud
from cloud.web.common.site import HELP, help_of
from cloud.web.help.library import help_library
from tests.unit.cloud.pages import signed_in

LIBRARY = help_library()
PATHS = sorted(LIBRARY.pages)


@pytest.mark.parametrize("path", PATHS)
def test_links_of_a_page_lead_to_pages_and_headings(path: str) -> None:
    html = LIBRARY.html(path)
    assert "<script" not in html
    assert not re.search(r"<a [^>]*></a>", html)
    for href in re.findall(r'href="([^"]*)"', html):
        place, _, anchor = href.partition("#")
        if href.startswith("http"):
            continue
        target = place.removeprefix("/help/") if place else path
        assert target in LIBRARY.pages, href
        assert not anchor or f'id="{anchor}"' in LIBRARY.html(target), href


def test_headings_have_the_anchors_of_the_page() -> None:
    for page in LIBRARY.pages.values():
        html = LIBRARY.html(page.path)
        anchors = re.findall(r'<h[123] id="([^"]*)"', html)
        assert len(set(anchors)) == len(anchors)
        assert [heading.anchor for heading in page.headings] == anchors[1:], page.path


def test_every_how_to_and_tutorial_is_in_a_group() -> None:
    listed = {page.path for group in LIBRARY.groups for page in group.pages}
    assert {path for path in PATHS if not path.startswith("reference/")} <= listed


def test_the_help_of_pages() -> None:
    assert {page for _, page in HELP} <= set(PATHS)
    for path, page in (
        ("/", "howto/cloud-pages"),
        ("/machines/1/logs", "howto/read-the-logs"),
        ("/machines/1", "howto/operate-a-machine"),
        ("/machines/1/other", "howto/operate-a-machine"),
        ("/data/export", "howto/cloud-data"),
        ("/audit", "howto/cloud-pages"),
    ):
        assert help_of(path) == f"/help/{page}", path
    assert help_of("/help/howto/triggers") == "/help"


@pytest.mark.parametrize(
    ("text", "path", "heading"),
    [
        ("triggers", "reference/triggers", "Triggers"),
        ("home assistant", "howto/connect-home-assistant", "Connect Home Assistant and MQTT"),
        ("HOME  tls", "howto/connect-home-assistant", "Use TLS"),
    ],
)
def test_search(text: str, path: str, heading: str) -> None:
    results = {page.path: place.text for page, place in LIBRARY.search(text)}
    assert results[path] == heading


def test_a_search_without_words_or_results() -> None:
    assert LIBRARY.search(" ") == []
    assert LIBRARY.search("xyzzy") == []


async def test_pages(cloud: MemoryCloud) -> None:
    person = await signed_in(cloud)
    page = await person.get("/help/howto/connect-home-assistant")
    assert page.status == 200
    assert "<h1 id=" in page.text
    assert "Tested with Mosquitto" in page.text
    assert 'href="/help/howto/read-the-logs"' in page.text  # another page of its group
    assert "<strong>Connect Home Assistant and MQTT</strong>" in (await person.get("/help?text=mqtt")).text
    for path in ("/help/howto/none", "/help/design/decisions", "/help/howto/..%2f..%2fREADME", "/help/howto/%00"):
        assert (await person.get(path)).status == 404, path
    assert (await person.get(f"/help?text={'x' * 201}")).status == 400
