"""Following a real file through every way of replacing it. The clock is real because file events are real."""

# ruff: noqa: ASYNC240 - the files are the thing under test

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from support.files.watched import watched_places
from uplink.files import FileReading, FileSource, decode_text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    path = home / "machine.json"
    path.write_text("1")
    return path


@contextlib.asynccontextmanager
async def following(path: Path) -> AsyncIterator[AsyncIterator[FileReading]]:
    with trio.fail_after(30):
        async with FileSource(path).readings() as readings:
            yield readings


async def text(readings: AsyncIterator[FileReading]) -> str:
    """Return the next text; `-` stands for a problem."""
    reading = await anext(readings)
    return "-" if reading.data is None else reading.data.decode()


def replace_atomically(path: Path, content: str) -> None:
    new = path.with_name(".new")
    new.write_text(content)
    new.replace(path)


async def test_written_in_place(path: Path) -> None:
    async with following(path) as readings:
        assert await text(readings) == "1"
        path.write_text("2")
        assert await text(readings) == "2"
        path.write_text("3")
        assert await text(readings) == "3"


async def test_replaced_by_rename_again_and_again(path: Path) -> None:
    async with following(path) as readings:
        assert await text(readings) == "1"
        for content in ("2", "3", "4"):
            replace_atomically(path, content)
            assert await text(readings) == content
        path.write_text("5")  # the new file is followed, not the old one
        assert await text(readings) == "5"


async def test_deleted_and_created_again(path: Path) -> None:
    async with following(path) as readings:
        assert await text(readings) == "1"
        path.unlink()
        reading = await anext(readings)
        assert str(reading.problem) == f"{path}: does not exist: create the file; it is read as soon as it exists"
        path.write_text("1")
        assert await text(readings) == "1"  # repeating the same text shows that the problem is over


async def test_a_file_that_is_not_there_yet_and_whose_directory_is_not_either(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "machine.json"
    async with following(path) as readings:
        assert await text(readings) == "-"
        path.parent.mkdir(parents=True)
        path.write_text("1")
        assert await text(readings) == "1"


async def test_directory_deleted_and_created_again(path: Path) -> None:
    async with following(path) as readings:
        assert await text(readings) == "1"
        path.unlink()
        path.parent.rmdir()
        assert await text(readings) == "-"
        path.parent.mkdir()
        path.write_text("2")
        assert await text(readings) == "2"


async def test_directory_replaced_by_rename(path: Path) -> None:
    async with following(path) as readings:
        assert await text(readings) == "1"
        other = path.parent.with_name("other")
        other.mkdir()
        (other / path.name).write_text("2")
        path.parent.rename(path.parent.with_name("old"))
        other.rename(path.parent)
        assert await text(readings) == "2"


async def test_a_directory_far_above_replaced_by_rename(tmp_path: Path) -> None:
    for top, content in (("top", "1"), ("other", "2")):
        (tmp_path / top / "a" / "b").mkdir(parents=True)
        (tmp_path / top / "a" / "b" / "machine.json").write_text(content)
    async with following(tmp_path / "top" / "a" / "b" / "machine.json") as readings:
        assert await text(readings) == "1"
        (tmp_path / "top").rename(tmp_path / "old")
        assert await text(readings) == "-"
        (tmp_path / "other").rename(tmp_path / "top")
        assert await text(readings) == "2"


async def test_symlink_swapped_as_kubernetes_does(tmp_path: Path) -> None:
    def version(name: str, content: str) -> Path:
        directory = tmp_path / name
        directory.mkdir()
        (directory / "machine.json").write_text(content)
        return directory

    version("..1", "1")
    (tmp_path / "..data").symlink_to("..1")
    path = tmp_path / "machine.json"
    path.symlink_to("..data/machine.json")
    async with following(path) as readings:
        assert await text(readings) == "1"
        for number in ("2", "3"):
            version(f"..{number}", number)
            (tmp_path / "..tmp").symlink_to(f"..{number}")
            (tmp_path / "..tmp").replace(tmp_path / "..data")
            assert await text(readings) == number
        (tmp_path / "..3" / "machine.json").write_text("4")  # in place, through both links
        assert await text(readings) == "4"


async def test_a_directory_on_the_way_is_a_link(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / path.name).write_text("2")
    link = tmp_path / "link"
    link.symlink_to(path.parent)
    async with following(link / path.name) as readings:
        assert await text(readings) == "1"
        new = tmp_path / "new"
        new.symlink_to(other)
        new.replace(link)
        assert await text(readings) == "2"


async def test_identical_content_and_other_files_are_ignored(path: Path) -> None:
    async with following(path) as readings:
        assert await text(readings) == "1"
        path.write_text("1")
        (path.parent / "other").write_text("x")
        with trio.move_on_after(0.2) as scope:
            pytest.fail(await text(readings))
        assert scope.cancelled_caught


async def test_a_burst_is_one_change_and_the_last_wins(path: Path) -> None:
    async with following(path) as readings:
        assert await text(readings) == "1"
        for number in range(100):
            path.write_text(str(number))
        assert await text(readings) == "99"


async def test_a_change_while_the_reader_is_busy_is_not_lost(path: Path) -> None:
    async with following(path) as readings:
        assert await text(readings) == "1"
        path.write_text("2")
        replace_atomically(path, "3")
        await trio.lowlevel.checkpoint()
        assert await text(readings) == "3"


async def test_endless_writing_does_not_starve_the_reader(path: Path) -> None:
    async with following(path) as readings, trio.open_nursery() as nursery:
        assert await text(readings) == "1"

        @nursery.start_soon
        async def _() -> None:
            for number in range(10_000):
                path.write_text(str(number))
                await trio.sleep(0.005)

        assert int(await text(readings)) > 1
        nursery.cancel_scope.cancel()


async def test_a_text_that_is_too_large_or_no_file_is_a_problem(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uplink.files.MAX_BYTES", 3)
    async with following(path) as readings:
        assert await text(readings) == "1"
        path.write_text("12345")
        assert "is larger than" in str((await anext(readings)).problem)
        path.unlink()
        os.mkfifo(path)
        assert "is not a regular file" in str((await anext(readings)).problem)
        path.unlink()
        path.write_text("2")
        assert await text(readings) == "2"


async def test_a_directory_in_its_place_is_a_problem_and_leaves_nothing_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    assert "is not a regular file" in str(FileSource(tmp_path).read().problem)
    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_loop_of_links_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    async with following(tmp_path / "a") as readings:
        assert "cannot be read" in str((await anext(readings)).problem)


async def test_nothing_stays_open(path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        async with following(path) as readings:
            await text(readings)
    assert len(os.listdir("/proc/self/fd")) == before


def test_places_of_a_plain_file(path: Path) -> None:
    assert watched_places(path) == ({path.parent, path}, {path})


def test_decode_text_substitutes_and_warns() -> None:
    decoded = decode_text(b'{"revision":"${REV}", "network":{"fqdn":"${NONE}"}}', {"REV": 'a"b'})
    assert decoded.document is not None
    assert decoded.document.revision == 'a"b'
    assert decoded.document.network.fqdn == ""
    assert [str(w) for w in decoded.warnings] == [
        "line 1: the environment has no NONE: set it, or give a default: ${NONE:-...}"
    ]


def test_decode_text_names_the_variable_that_left_a_value_out() -> None:
    decoded = decode_text(b'{"jobs": [],\n "debug": ${DEBUG}}', {})
    assert decoded.document is None
    assert [str(problem).partition(":")[0] for problem in decoded.problems] == ["line 2", "line 2, column 11"]
    assert "DEBUG" in str(decoded.problems[0])
    decoded = decode_text(b'{"debug": ${DEBUG:-true}}', {})
    assert decoded.document is not None
    assert decoded.document.debug


def test_decode_text_of_bytes_that_are_not_text() -> None:
    decoded = decode_text(b"{\xff}", {})
    assert decoded.document is None
    assert "UTF-8" in str(decoded.problems[0])
