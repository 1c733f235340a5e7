"""The logs of a machine: filters, older pages, and live lines."""

from __future__ import annotations

import re
import sqlite3
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from cloud.domain.machines import logs
from cloud.domain.machines.logs import LogRecord
from cloud.domain.organizations.first import create_owner
from cloud.server.memory import MemoryCloud
from cloud.store.sqlite import SqliteHandle
from cloud.store.tables import core
from cloud.web.common.closing import GONE
from cloud.web.views.log_view import BRIEF, LEVELS, PAGE, LogFilter, collapsed, line
from tests.unit.cloud.pages import HOST, signed_in
from tests.unit.runtime.parts.web.client import LivePage

LIMIT = 30.0
ORIGIN = {"origin": f"http://{HOST}"}
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


async def log(cloud: MemoryCloud, part: str, *entries: LogRecord) -> None:
    received = max(cloud.cloud.clock(), *(record.time for record in entries))
    for start in range(0, len(entries), logs.MAX_BATCH):
        some = entries[start : start + logs.MAX_BATCH]
        await cloud.cloud.store.write(lambda sql, some=some: logs.append(sql, part, some, received))  # type: ignore[misc]


def entry(message: str, level: str = "info", logger: str = "rdk.motor", minute: int = 0, **fields: Any) -> LogRecord:
    return LogRecord(BEGIN + timedelta(minutes=minute), level, logger, message, fields=(fields,) if fields else ())


def messages(html: str) -> list[str]:
    return re.findall(r'<span class="what">([^<\n]*?)(?: <|</)', html)


async def test_a_plot_reads_the_rate_of_lines(cloud: MemoryCloud, part: str) -> None:
    await log(cloud, part, entry("a", "warn"), entry("b", "error", minute=25), entry("c", "error", minute=26))
    pages = await signed_in(cloud)
    path = f"/machines/{part}/logs/rates"
    answer = (await pages.get(f"{path}?from=2026-01-01T00:00&to=2026-01-01T00:30")).json()
    (series,) = answer["series"]
    assert [(field["name"], field["label"], field["count"]) for field in series["fields"]] == [
        ("error", "errors", [0, 0, 2]),
        ("warn", "warnings", [1, 0, 0]),
    ]
    assert (answer["times"][1] - answer["times"][0], answer["step"]) == (600_000, 600_000)
    empty = (await pages.get(f"{path}?from=2025-01-01T00:00&to=2025-01-01T00:30")).json()
    assert (empty["series"], empty["to"] - empty["from"]) == ([], 1_800_000)
    assert f"{path}&#34;" in (await pages.get(f"/machines/{part}/logs")).text


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("from=2026-01-02T00:00&to=2026-01-01T00:00", "the range of the plot is not valid"),
        ("points=1", "the range of the plot is not valid"),
        ("points=99999999999999", "the range of the plot is not valid"),
        ("points=x", "the range of the plot is not valid"),
        ("from=yesterday", "from='yesterday' is not a time"),
    ],
)
async def test_a_plot_of_an_invalid_range_is_refused(cloud: MemoryCloud, part: str, query: str, said: str) -> None:
    response = await (await signed_in(cloud)).get(f"/machines/{part}/logs/rates?{query}")
    assert response.status == 400
    assert said in response.json()["error"]


@pytest.mark.parametrize(
    "query", ["", "to=0001-01-01T00:00:01", "from=0001-01-01T00:00&to=9999-12-31T23:59&points=2000"]
)
async def test_a_plot_of_any_range_is_answered(cloud: MemoryCloud, part: str, query: str) -> None:
    await log(cloud, part, entry("a"))
    response = await (await signed_in(cloud)).get(f"/machines/{part}/logs/rates?{query}")
    assert response.status == 200
    assert len(response.json()["times"]) <= 2000


async def test_the_newest_line_is_last_and_the_retention_is_shown(cloud: MemoryCloud, part: str) -> None:
    await log(cloud, part, entry("second", minute=2), entry("first", minute=1))
    page = (await (await signed_in(cloud)).get(f"/machines/{part}/logs")).text
    assert messages(page) == ["first", "second"]
    assert "kept for 30 days" in page


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", ["a", "b", "c", "d"]),
        ("level=info", ["b", "c", "d"]),
        ("level=warn", ["c", "d"]),
        ("level=error", ["d"]),
        ("level=nonsense", ["a", "b", "c", "d"]),
        ("text=B", ["b", "d"]),  # also matches the logger
        ("text=left", ["c"]),
        ("logger=base", ["d"]),
        ("from=2026-01-01T00:02", ["c", "d"]),
        ("to=2026-01-01T00:02", ["a", "b"]),
        ("from=2026-01-01T00:01&to=2026-01-01T00:02", ["b"]),
        ("level=warn&logger=motor", ["c"]),
        ("text=%25", []),
    ],
)
async def test_filters(cloud: MemoryCloud, part: str, query: str, shown: list[str]) -> None:
    await log(
        cloud,
        part,
        entry("a", "debug", minute=0),
        entry("b", "info", minute=1),
        entry("c", "WARNING", minute=2, side="left"),
        entry("d", "fatal", "rdk.base", minute=3),
    )
    page = (await (await signed_in(cloud)).get(f"/machines/{part}/logs?{query}")).text
    assert messages(page) == shown


async def test_every_line_is_on_exactly_one_page(cloud: MemoryCloud, part: str) -> None:
    count = 2 * PAGE + 7
    await log(cloud, part, *(entry(f"m{number}", minute=number // 3) for number in range(count)))
    person = await signed_in(cloud)
    url, result, pages = f"/machines/{part}/logs?level=info", [], 0
    while url:
        page = (await person.get(url)).text
        result = messages(page) + result
        pages += 1
        older = re.search(r'<a href="([^"]+)">Older lines', page)
        url = older[1].replace("&amp;", "&") if older else ""
        if url:
            assert "level=info" in url
    assert (pages, result) == (3, [f"m{number}" for number in range(count)])


NO_TIMES = ("from=yesterday", "to=2026-13-01", "to=0001-01-01T00:00:00%2B23:59", "from=9999-12-31T23:59:59-23:59")
NO_PLACES = ("before=1", "before=x.y", "before=1.2.3", f"before={'9' * 30}.1", f"before=1.{'9' * 30}")


@pytest.mark.parametrize("query", [*NO_TIMES, *NO_PLACES])
async def test_invalid_times_and_positions_are_reported(cloud: MemoryCloud, part: str, query: str) -> None:
    person = await signed_in(cloud)
    assert (await person.get(f"/machines/{part}/logs?{query}")).status == 400
    if query in NO_TIMES:
        assert (await person.get(f"/audit?{query}")).status == 400
        named = query.replace("from=", "start=").replace("to=", "end=")
        assert "is not a time" in (await person.get(f"/data?{named}")).text


async def test_lines_are_escaped(cloud: MemoryCloud, part: str) -> None:
    await log(cloud, part, entry("<img src=x>", logger="<b>", note="<i>"))
    page = (await (await signed_in(cloud)).get(f"/machines/{part}/logs")).text
    assert not {"<img", "<b>", "<i>"} & set(re.findall(r"<\w+[ >]?", page))
    assert "&lt;img src=x&gt;" in page


async def test_logs_of_another_organization_are_not_found(cloud: MemoryCloud, part: str) -> None:
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    await cloud.cloud.authenticator.load()
    stranger = await signed_in(cloud, (other.id, other.key))
    assert (await stranger.get(f"/machines/{part}/logs")).status == 404
    async with stranger.live(f"/live/logs/{part}?since=0", ORIGIN) as page:
        assert (await page.message())["code"] == GONE


# ---- live


async def lines(page: LivePage, count: int) -> list[str]:
    results: list[str] = []
    while len(results) < count:
        results += [text for html in (await page.next())["log"] for text in messages(html)]
    return results


async def test_matching_lines_arrive_exactly_once(cloud: MemoryCloud, part: str) -> None:
    person = await signed_in(cloud)
    await log(cloud, part, entry("before"))
    page = (await person.get(f"/machines/{part}/logs?level=warn")).text
    result = re.search(r'data-live="([^"]+)"', page)
    assert result is not None
    url = result[1].replace("&amp;", "&")
    await log(cloud, part, entry("between", "error"))  # after the page was rendered, before it connects
    with trio.fail_after(LIMIT):
        async with person.live(url, ORIGIN) as live:
            assert await lines(live, 1) == ["between"]
            for number in range(5):
                await log(cloud, part, entry(f"quiet{number}"), entry(f"loud{number}", "error"))
            assert await lines(live, 5) == [f"loud{number}" for number in range(5)]


async def test_a_page_of_older_lines_is_not_live(cloud: MemoryCloud, part: str) -> None:
    person = await signed_in(cloud)
    for query in ("to=2026-01-01T00:00", "before=1.1"):
        assert "data-live" not in (await person.get(f"/machines/{part}/logs?{query}")).text


TEXTS = st.sampled_from(["", "a", "A", "left", "%", "_", "!", "x y"])


@given(
    st.sampled_from(LEVELS),
    TEXTS,
    TEXTS,
    st.lists(
        st.tuples(st.sampled_from(["debug", "info", "warn", "error", "fatal", "odd"]), TEXTS, TEXTS, TEXTS), max_size=8
    ),
)
def test_live_lines_are_those_that_a_search_finds(
    level: str, text: str, logger: str, item: list[tuple[str, str, str, str]]
) -> None:
    """SQL and Python implement the same filter."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(core.TABLES + core.LOG_TIMES + core.LOG_COUNTS)
    records = [
        LogRecord(BEGIN + timedelta(seconds=number), kind, source, message, fields=({"k": value},))
        for number, (kind, source, message, value) in enumerate(item)
    ]

    sql = SqliteHandle(connection)
    logs.append(sql, "p", records, BEGIN)
    expected = LogFilter(level, text, logger)
    results = [element.number for element in logs.query(sql, "p", expected.search())]
    live = [result.number for result in logs.arrived(sql, "p", 0) if expected.admits(result)]
    connection.close()
    assert sorted(results) == live


def test_contents_of_a_line() -> None:
    first = line(LogRecord(BEGIN, "panic", "l", "m", stack="at f\n", fields=({"n": 1, "t": "x"},)))
    assert (first.level, first.message, first.fields) == ("error", "m\nat f", "n=1 t=x")


def test_equal_lines_in_a_row_are_shown_line() -> None:
    records = [entry("a", minute=0), entry("a", minute=1), entry("b", minute=2), entry("a", minute=3)]
    records += [entry("a", minute=4, n=1), entry("a", "warn", minute=5)]
    shown = collapsed(map(line, records))
    assert [(shown_line.message, len(shown_line.repeats)) for shown_line in shown] == [
        ("a", 1),
        ("b", 0),
        ("a", 0),
        ("a", 0),
        ("a", 0),
    ]
    assert shown[0].repeats == (BEGIN + timedelta(minutes=1),)


def test_a_closed_line_is_brief() -> None:
    assert not line(entry("short")).opens
    assert line(entry("short", n=1)).opens
    long = line(entry("x" * 1000))
    assert (long.opens, long.brief, long.message) == (True, "x" * BRIEF, "x" * 1000)
    nested = line(entry("a", place={"x": 0.30000000000000004}, text="t"))
    assert nested.pairs == (("place", '{"x": 0.30000000000000004}'), ("text", "t"))


async def test_the_lines_around_a_line(cloud: MemoryCloud, part: str) -> None:
    await log(cloud, part, *(entry(f"line {number}", minute=number) for number in range(3 * PAGE)))
    person = await signed_in(cloud)
    hit = (await person.get(f"/machines/{part}/logs?text=line 300")).text
    (number,) = re.findall(r'href="\?around=(\d+)#line-', hit)
    page = (await person.get(f"/machines/{part}/logs?around={number}&text=ignored")).text
    each = PAGE // 2 - 1
    assert messages(page) == [f"line {at}" for at in range(300 - each, 300 + each + 1)]
    assert re.findall(r'id="line-(\d+)"[^>]* class="is-chosen"', page) == [number]
    assert "data-pause" not in page  # no new lines arrive on it
    assert (await person.get(f"/machines/{part}/logs?around=999999")).status == 404
    machine = await cloud.app("new_robot", name="other", location=cloud.first.location)
    (other,) = await cloud.app("get_robot_parts", robot_id=machine)
    assert (await person.get(f"/machines/{other['id']}/logs?around={number}")).status == 404  # of another machine


async def test_filters_and_sources_are_links(cloud: MemoryCloud, part: str) -> None:
    await log(cloud, part, entry("a", logger="rdk.x"), entry("b", logger="rdk.x"), entry("c", "error", "rdk.y"))
    person = await signed_in(cloud)
    page = (await person.get(f"/machines/{part}/logs?level=info")).text
    assert re.findall(r'title="Only lines of ([^"]*)"', page) == ["rdk.x", "rdk.y"]
    assert f'href="/machines/{part}/logs?level=info&amp;logger=rdk.x"' in page
    chosen = (await person.get(f"/machines/{part}/logs?level=info&logger=rdk.x")).text
    assert "Only lines of" not in chosen
    assert f'href="/machines/{part}/logs?level=info" title="Remove this filter"' in chosen


def test_a_filter_is_kept_in_the_address() -> None:
    expected = LogFilter.of(
        {"level": "warn", "text": " a ", "logger": "l", "from": "2026-01-01T00:00", "to": "2026-01-02T00:00"}
    )
    assert LogFilter.of(expected.fields()) == expected
    assert LogFilter().fields() == {}


# ---- all machines


async def test_the_lines_of_all_machines_newest_first(cloud: MemoryCloud, part: str) -> None:
    machine = await cloud.app("new_robot", name="boat", location=cloud.first.location)
    (other,) = await cloud.app("get_robot_parts", robot_id=machine)
    now = cloud.cloud.clock()
    await log(cloud, part, LogRecord(now - timedelta(minutes=2), "warn", "rdk.motor", "slow"))
    await log(cloud, part, LogRecord(now - timedelta(minutes=1), "error", "rdk.motor", "stuck"))
    await log(cloud, other["id"], LogRecord(now, "info", "rdk.sail", "<b>wind</b>"))
    pages = await signed_in(cloud)
    html = (await pages.get("/logs")).text
    assert "Logs of all machines" in html
    assert "2 machines" in html
    assert messages(html) == ["&lt;b&gt;wind&lt;/b&gt;", "stuck", "slow"]
    assert f'<a class="of" href="/machines/{part}/logs">rover</a>' in html
    assert re.search(rf'href="/machines/{part}/logs\?around=\d+#line-', html)
    assert "No older lines." in html
    chosen = (await pages.get("/logs?q=rover&level=warn&text=STUCK")).text
    assert "Logs of chosen machines" in chosen
    assert messages(chosen) == ["stuck"]
    assert messages((await pages.get("/logs?q=nothing")).text) == []
    assert "No machine matches." in (await pages.get("/logs?q=nothing")).text
    assert 'formaction="/logs"' in (await pages.get("/")).text


async def test_older_lines_of_all_machines_follow_page_by_page(cloud: MemoryCloud, part: str) -> None:
    now = cloud.cloud.clock()
    await log(cloud, part, *(LogRecord(now - timedelta(seconds=n), "info", "l", f"line {n}") for n in range(PAGE + 20)))
    pages = await signed_in(cloud)
    first = (await pages.get("/logs")).text
    (older,) = re.findall(r'href="(/logs\?[^"]*before=[^"]*)">Older lines', first)
    second = (await pages.get(unescape(older))).text
    assert messages(first) + messages(second) == [f"line {n}" for n in range(PAGE + 20)]
    assert "Newest lines" in second


async def test_others_do_not_see_these_lines(cloud: MemoryCloud, part: str) -> None:
    now = cloud.cloud.clock()
    await log(cloud, part, LogRecord(now, "error", "rdk.motor", "secret of ours"))
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "other", now))
    html = (await (await signed_in(cloud, (other.id, other.key))).get("/logs?text=secret")).text
    assert "of ours" not in html
