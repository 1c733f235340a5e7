"""Static files: names that change with the content, compression, and what `web/` has built."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
import trio
from starlette.requests import Request

from rpc.pages.assets import BUILT, Assets
from rpc.pages.compression import PIECE, compress


def request(encoding: str = "", query: str = "") -> Request:
    headers = [(b"accept-encoding", encoding.encode())] if encoding else []
    return Request({"type": "http", "headers": headers, "query_string": query.encode()})


@pytest.fixture
def assets(tmp_path: Path) -> Assets:
    (tmp_path / "a.css").write_text("body{}" * 1000)
    (tmp_path / "small.css").write_text("p{}")
    (tmp_path / "secret.txt").write_text("x")
    return Assets(tmp_path)


async def test_a_file_has_a_new_address_with_each_content(assets: Assets, tmp_path: Path) -> None:
    first = assets.url("a.css")
    (tmp_path / "a.css").write_text("changed")
    assert assets.url("a.css") == first  # a running server has one version
    assert Assets(tmp_path).url("a.css") != first
    for name in ("none.css", "secret.txt", "../a.css", ""):
        assert assets.get(name) is None
        with pytest.raises(KeyError):
            assets.url(name)


async def test_responses_are_compressed_if_the_client_accepts_it(assets: Assets) -> None:
    for encoding, compressed in (("", False), ("gzip, deflate, br", True), ("br", False)):
        response = await assets.respond(request(encoding), "a.css")
        assert response is not None
        assert (response.headers.get("content-encoding") == "gzip") is compressed
        assert response.headers["vary"] == "accept-encoding"
        body = bytes(response.body)
        assert (gzip.decompress(body) if compressed else body) == b"body{}" * 1000
    small = await assets.respond(request("gzip"), "small.css")
    assert small is not None
    assert "content-encoding" not in small.headers
    assert await assets.respond(request(), "none.css") is None


async def test_only_addresses_that_change_are_cached_for_ever(assets: Assets) -> None:
    for name, query, forever in (
        ("a.css", "v=1", True),
        ("a.css", "", False),
        (assets.url("control.js").removeprefix("/static/"), "", True),
    ):
        response = await assets.respond(request(query=query), name)
        assert response is not None
        assert ("immutable" in response.headers["cache-control"]) is forever, name


async def test_compression_lets_other_tasks_run() -> None:
    data, turns = bytes(range(256)) * (20 * PIECE // 256), 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        assert gzip.decompress(await compress(data)) == data
        nursery.cancel_scope.cancel()
    assert turns >= 10  # of 20 pieces; tasks of one pass run in any order


def test_built_files_load_nothing_from_elsewhere_and_are_small() -> None:
    """The policy of the pages forbids it; here it is seen before a browser sees it."""
    scripts = sorted(BUILT.glob("*.js"))
    assert scripts
    for script in scripts:
        text = script.read_text()
        assert not re.search(r"""(?:import|from)\s*\(?["']https?:""", text), script.name
        assert len(gzip.compress(text.encode())) <= 150_000, script.name


@pytest.mark.parametrize(
    ("island", "most"), [("code", 145), ("control", 115), ("difference", 3), ("plot", 53), ("sql", 30)]
)
def test_an_island_loads_little_at_first(island: str, most: int) -> None:
    """Pages have 150 kB at most, with an empty cache; what is imported only when it is used does not count."""
    manifest = json.loads((BUILT / "manifest.json").read_text())
    names, waiting = set(), [f"src/{island}/main.ts"]
    while waiting:
        entry = manifest[waiting.pop()]
        names.add(entry["file"])
        waiting += [name for name in entry.get("imports", ()) if manifest[name]["file"] not in names]
    assert sum(len(gzip.compress((BUILT / name).read_bytes(), 6)) for name in names) <= 1000 * most


def test_an_island_has_the_styles_of_all_modules_that_it_loads(assets: Assets) -> None:
    """Which module has a style sheet is decided when they are built: shared ones move to a module of their own."""
    manifest = json.loads((BUILT / "manifest.json").read_text())
    for entry in manifest.values():
        if not entry.get("isEntry"):
            continue
        needed, seen, waiting = set(), set(), [entry]
        while waiting:
            module = waiting.pop()
            seen.add(module["file"])
            needed |= {f"/static/{style}" for style in module.get("css", ())}
            waiting += [manifest[name] for name in module.get("imports", ()) if manifest[name]["file"] not in seen]
        assert set(assets.styles(entry["name"])) == needed
    plot = "".join((BUILT / Path(url).name).read_text() for url in assets.styles("plot"))
    assert ".u-over" in plot  # of uPlot, which the pages SQL and Data share
