"""Which files belong to a program, and what counts as a change; watching uses real files."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import trio

from runtime.parts.modules import reload
from schema.document.modules import Module


@pytest.mark.parametrize("name", ["main.py", "run.sh", "meta.json", "lib.so", "a"])
def test_these_are(name: str) -> None:
    assert reload.is_watched(name)


@pytest.mark.parametrize("name", [".git", ".main.py.swp", "main.py~", "#main.py#", "a.pyc", "x.log", "s.sock", "4.tmp"])
def test_these_are_not(name: str) -> None:
    assert not reload.is_watched(name)


def test_changes() -> None:
    a, b, c, d = map(Path, "abcd")
    before = {a: (1, 1, 1), b: (1, 1, 1), c: (1, 1, 1)}
    after = {a: (1, 1, 1), b: (2, 1, 1), d: (1, 1, 1)}
    assert reload.changes(before, after) == [b, c, d]
    assert not reload.changes(after, after)


async def test_saves_of_a_moment_are_one_restart(tmp_path: Path) -> None:
    (tmp_path / "run.sh").touch()
    (tmp_path / "deep" / "er").mkdir(parents=True)
    module = Module(name="demo", executable_path=str(tmp_path / "run.sh"))
    send, receive = trio.open_memory_channel[str](10)
    reloader = reload.Reloader(module, send.send_nowait)
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(reloader.run, {}))
        for number in range(5):
            (tmp_path / f"part{number}.py").write_text("x")
        with trio.fail_after(30):
            assert await receive.receive() == "part0.py, part1.py, part2.py and 2 more changed"
        (tmp_path / "deep" / "er" / "new.py").write_text("x")
        with trio.fail_after(30):
            assert await receive.receive() == "deep/er/new.py changed"
        (tmp_path / "fresh").mkdir()
        (tmp_path / "fresh" / "inside.py").write_text("x")
        with trio.fail_after(30):
            assert await receive.receive() == "fresh/inside.py changed"
        (tmp_path / "fresh" / "inside.py").write_text("changed")
        with trio.fail_after(30):
            assert await receive.receive() == "fresh/inside.py changed"
        (tmp_path / "out.log").write_text("nothing")
        (tmp_path / "run.sh").unlink()
        with trio.fail_after(30):
            assert await receive.receive() == "run.sh changed"
        nursery.cancel_scope.cancel()
    with pytest.raises(trio.WouldBlock):
        receive.receive_nowait()


async def test_of_an_archive_only_the_archive_counts(tmp_path: Path) -> None:
    module = Module(name="demo", executable_path=str(tmp_path / "demo.tgz"))
    send, receive = trio.open_memory_channel[str](10)
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(reload.Reloader(module, send.send_nowait).run, {}))
        (tmp_path / "other.py").write_text("x")
        (tmp_path / "demo.tgz").write_bytes(b"x")
        with trio.fail_after(30):
            assert await receive.receive() == "demo.tgz changed"
        nursery.cancel_scope.cancel()
