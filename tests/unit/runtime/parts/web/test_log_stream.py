"""The stream of log lines for programs: filters, line numbers, instances, and readers slower than the log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
import trio
import trio.testing

from engine.views.source import ShownEntry
from runtime.parts.web.logs import AT_ONCE, INVALID, LogQuery
from runtime.parts.web.pages import build
from schema.errors import MachineError
from tests.unit.runtime.parts.web.client import Browser, LivePage
from tests.unit.runtime.parts.web.machine_in_memory import MOTOR, START, MachineInMemory

pytestmark = pytest.mark.usefixtures("autojump_clock")


def entry(seq: int = 1, **facts: Any) -> ShownEntry:
    return ShownEntry(**{"seq": seq, "time": START, "level": "info", "logger": "rdk.config", "message": "x", **facts})


@pytest.mark.parametrize(
    ("query", "item", "admitted"),
    [
        ({}, entry(level="debug"), True),
        ({"level": "Warn"}, entry(level="info"), False),
        ({"level": "warn"}, entry(level="error"), True),
        ({"text": "DRY"}, entry(message="the pump is dry"), True),
        ({"text": "dry"}, entry(fields='{"pump":"dry"}'), True),
        ({"text": "dry"}, entry(), False),
        ({"logger": "rdk.config"}, entry(), True),
        ({"logger": "rdk.con"}, entry(), False),
        ({"logger": "rdk.*"}, entry(), True),
        ({"logger": "rdk.components.motor"}, entry(logger=f"rdk.resource_manager.{MOTOR}"), True),
        ({"logger": "weather"}, entry(logger="rdk.modmanager.weather.StdOut"), True),
        ({"resource": MOTOR}, entry(logger=f"rdk.resource_manager.{MOTOR}", resource=MOTOR), True),
        ({"resource": MOTOR}, entry(), False),
        ({"after": "10m"}, entry(time=START - timedelta(minutes=9)), True),
        ({"after": "10m"}, entry(time=START - timedelta(minutes=11)), False),
        ({"after": "2026-03-01T12:00:00Z"}, entry(), True),
        ({"after": "2026-03-01T12:00:01Z"}, entry(), False),
        ({"after": "2026-03-01T12:00:00+01:00"}, entry(), True),
        ({"after": "2026-03-02"}, entry(), False),
    ],
)
def test_wishes(query: dict[str, str], item: ShownEntry, admitted: bool) -> None:
    assert LogQuery.of(query, START).admits(item) is admitted


@pytest.mark.parametrize(
    "query",
    [{"level": "loud"}, {"logger": "("}, {"after": "soon"}, {"after": "-"}, {"newest": "-1"}, {"since": "x"}],
)
def test_wishes_that_are_not_understood(query: dict[str, str]) -> None:
    (name,) = query
    with pytest.raises(MachineError, match=rf"{name}=.* is not valid: write"):
        LogQuery.of(query, datetime.now(UTC))


class Forgetful(MachineInMemory):
    """Keep only the newest 10 lines."""

    def logs(self, since: int = 0) -> Sequence[ShownEntry]:
        return [entry for entry in self.entries if entry.seq > since][-10:]


@asynccontextmanager
async def stream(source: MachineInMemory, **query: str) -> AsyncIterator[LivePage]:
    async with Browser(build(source)).live(f"/logs/stream?{urlencode(query)}") as page:
        assert page.first["type"] == "websocket.accept"
        yield page


def machine(lines: int = 3) -> MachineInMemory:
    forgetful = Forgetful()
    forgetful.entries.clear()
    for number in range(1, lines + 1):
        forgetful.write(f"line {number}", "warn" if number % 2 else "info", fields=f'{{"n":{number}}}')
    return forgetful


def texts(message: dict[str, Any]) -> list[str]:
    return [item["message"] for item in message["entries"]]


async def test_existing_entries_and_the_end() -> None:
    source = machine()
    async with stream(source) as page:
        assert await page.next() == {
            "machine": {"instance": source.now.started.isoformat(), "host": "rover-7", "version": "0.1.0"}
        }
        entries = (await page.next())["entries"]
        assert entries[0] == {
            "seq": 1,
            "time": "2026-03-01T12:00:01Z",
            "level": "warn",
            "logger": "rdk.config",
            "caller": "",
            "message": "line 1",
            "fields": {"n": 1},
        }
        assert len(entries) == 3
        assert (await page.message())["type"] == "websocket.close"


async def test_the_newest_are_those_of_what_is_wanted() -> None:
    async with stream(machine(10), newest="2", level="warn") as page:
        await page.next()
        assert texts(await page.next()) == ["line 7", "line 9"]
    async with stream(machine(10), newest="0") as page:
        await page.next()
        assert (await page.message())["type"] == "websocket.close"


async def test_following_gives_what_comes_and_is_wanted() -> None:
    source = machine()
    async with stream(source, follow="1", level="warn", newest="1") as page:
        await page.next()
        assert texts(await page.next()) == ["line 3"]
        source.write("quiet")
        source.write("loud", "error")
        assert texts(await page.next()) == ["loud"]


async def test_a_reader_that_comes_back_goes_on_where_it_was() -> None:
    source = machine()
    result = source.now.started.isoformat()
    async with stream(source, since="2", instance=result) as page:
        await page.next()
        assert texts(await page.next()) == ["line 3"]
    async with stream(source, since="2", instance="2020-01-01T00:00:00+00:00") as page:
        await page.next()
        assert texts(await page.next()) == ["line 1", "line 2", "line 3"]  # numbers of an earlier process do not count


async def test_lines_that_were_forgotten_are_counted() -> None:
    source = machine(25)
    async with stream(source, since="5", instance=source.now.started.isoformat(), follow="1") as page:
        await page.next()
        assert await page.next() == {"missed": 10}
        assert texts(await page.next())[0] == "line 16"
        for number in range(30):
            source.write(f"more {number}")
        assert await page.next() == {"missed": 20}
        assert texts(await page.next()) == [f"more {number}" for number in range(20, 30)]


async def test_a_burst_is_one_message() -> None:
    source = machine()
    async with stream(source, follow="1", newest="0") as page:
        await page.next()
        await trio.testing.wait_all_tasks_blocked()  # the stream has sent what was there
        for number in range(9):
            source.write(f"more {number}")
        assert len(texts(await page.next())) == 9


async def test_many_lines_come_in_parts() -> None:
    source = machine(0)
    source.entries.extend(entry(number) for number in range(1, AT_ONCE + 3))
    source.logs = lambda since=0: source.entries[since:]  # type: ignore[method-assign]
    async with stream(source) as page:
        await page.next()
        assert [len((await page.next())["entries"]) for _ in range(2)] == [AT_ONCE, 2]


async def test_wishes_that_are_wrong_close_it_with_the_reason() -> None:
    async with stream(machine(), level="loud") as page:
        end = await page.message()
        assert (end["type"], end["code"]) == ("websocket.close", INVALID)
        assert end["reason"] == "level=loud is not valid: write one of debug, info, warn, error"


@pytest.mark.parametrize("level", ["x" * 500, "\u00e4" * 500, "x" + "\u00e4" * 500, "\u2603" * 500])
async def test_a_long_reason_is_cut_to_the_bytes_of_a_close_frame(level: str) -> None:
    async with stream(machine(), level=level) as page:
        end = await page.message()
        assert f"level={level}".startswith(end["reason"])
        assert 121 <= len(end["reason"].encode()) <= 123


async def test_pages_of_other_sites_may_not_listen() -> None:
    async with Browser(build(machine())).live("/logs/stream", {"origin": "http://evil.example"}) as page:
        assert page.first["type"] == "websocket.close"


async def test_a_reader_that_goes_away_ends_it() -> None:
    source = machine()
    with trio.fail_after(10):
        async with stream(source, follow="1") as page:
            await page.next()
