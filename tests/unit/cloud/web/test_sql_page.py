"""The page for SQL: questions by link, answers as a table and as a file, through the guard."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from typing import Any, Final
from urllib.parse import urlencode

import pytest
import trio

from cloud.domain.organizations import saved_queries as saved
from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key
from cloud.domain.organizations.tenants import delete_location, delete_organization
from cloud.domain.queries.query import EXAMPLES, QueryStage
from cloud.server.memory import MemoryCloud
from cloud.store.sql import Sql
from cloud.values.times import now
from cloud.web.pages.sql import SHOWN, answers
from tests.unit.cloud.captured import START, Uploads, piece
from tests.unit.cloud.pages import HOST, post, signed_in
from tests.unit.runtime.parts.web.client import HTML, JSON, Browser, Reply

pytest.importorskip("_duckdb", reason="SQL needs the extra `data`")


@pytest.fixture
def up(cloud: MemoryCloud, part: str) -> Uploads:
    return Uploads(cloud, part)


async def asked(created: Browser, path: str, query: str, organization: str) -> Reply:
    return await created.send("GET", f"{path}?{urlencode({'query': query, 'organization': organization})}", HTML)


async def test_a_link_shows_the_answer_to_its_query(up: Uploads) -> None:
    await up.readings(*(piece(number, t=float(number), name="<b>") for number in range(3)))
    page, organization = await signed_in(up.cloud), up.cloud.first.organization
    empty = await page.send("GET", "/sql", HTML)
    assert empty.status == 200
    assert "<code>data.readings.celsius</code>" in empty.text
    assert 'href="/sql"' in empty.text, "in the navigation"
    query = "SELECT time_requested, data.t, data FROM readings\nORDER BY time_requested"
    reply = await asked(page, "/sql", query, organization)
    assert reply.status == 200
    assert f">{query}</textarea>" in reply.text
    assert "<th>time_requested</th><th>t</th><th>data</th>" in reply.text
    assert "<td>2026-01-01 00:00:01.000</td><td>1.0</td><td>{&#34;name&#34;: &#34;&lt;b&gt;&#34;" in reply.text
    assert "3 rows" in reply.text
    for _, example in EXAMPLES:
        assert (await asked(page, "/sql", example, organization)).status == 200


async def test_a_file_has_all_rows(up: Uploads) -> None:
    page, organization = await signed_in(up.cloud), up.cloud.first.organization
    query = f"SELECT range AS n, '=' || range AS formula, NULL AS nothing FROM range({SHOWN + 1})"
    reply = await asked(page, "/sql", query, organization)
    assert f"{SHOWN + 1} rows, of which the first {SHOWN} are shown" in reply.text
    file = await asked(page, "/sql/answer.csv", query, organization)
    rows = list(csv.reader(io.StringIO(file.text)))
    assert rows[:2] == [["n", "formula", "nothing"], ["0", "'=0", ""]]
    assert len(rows) == SHOWN + 2


async def test_a_mistake_is_shown_with_the_query(up: Uploads) -> None:
    page = await signed_in(up.cloud)
    reply = await asked(page, "/sql", "SELECT nothing FROM readings", up.cloud.first.organization)
    assert reply.status == 400
    assert "nothing" in reply.text
    assert ">SELECT nothing FROM readings</textarea>" in reply.text
    assert 'role="alert"' in reply.text


async def test_only_operators_of_an_organization_ask(up: Uploads) -> None:
    cloud = up.cloud.cloud
    other = await cloud.store.write(lambda sql: create_owner(sql, "Other", now()))
    page = await signed_in(up.cloud, (other.id, other.key))
    for path in ("/sql", "/sql/answer.csv"):
        reply = await asked(page, path, "SELECT 1", up.cloud.first.organization)
        assert reply.status in (403, 404)
        assert (await asked(page, path, "SELECT 1 AS n", other.organization)).status == 200
    grant = Grant("operator", "location", up.cloud.first.location)
    organization = up.cloud.first.organization
    key = await cloud.store.write(lambda sql: create_key(sql, organization, "local", [grant], START))
    await cloud.authenticator.load()
    reply = await asked(await signed_in(up.cloud, key), "/sql", "SELECT 1", organization)
    assert reply.status in (403, 404)


# ---- for scripts


async def streamed(page: Browser, organization: str, query: str) -> list[dict[str, Any]]:
    """Return the lines of an answer."""
    body = json.dumps({"organization": organization, "query": query})
    reply = await page.send("POST", "/sql/answer", {**JSON, "origin": f"http://{HOST}"}, body.encode())
    assert reply.status == 200
    return [json.loads(line) for line in reply.text.splitlines()]


async def test_an_answer_for_scripts_has_stages_types_and_values(up: Uploads) -> None:
    await up.readings(*(piece(number, t=float(number)) for number in range(3)))
    page, organization = await signed_in(up.cloud), up.cloud.first.organization
    query = (
        "SELECT time_requested AS t, data.t AS v, 9007199254740993 AS big, 'nan'::DOUBLE AS n, 'a' AS s, [1, 2] AS l, "
        "{'a': '\\xAA'::BLOB} AS o, true AS b, 1 AS v FROM readings ORDER BY 1 LIMIT 1"
    )
    *stages, last = await streamed(page, organization, query)
    assert [stage["stage"] for stage in stages] == ["waiting", "copying", "running"]
    kinds = ["time", "number", "number", "number", "text", "json", "json", "boolean", "number"]
    assert [column["kind"] for column in last["columns"]] == kinds
    assert [column["name"] for column in last["columns"]][-1] == "v_1"
    assert last["columns"][1]["type"] == "DOUBLE"
    assert last["rows"] == [[1767225600000, 0.0, "9007199254740993", "nan", "a", [1, 2], {"a": "aa"}, True, 1]]
    assert last["count"] == 1
    (*_, empty) = await streamed(page, organization, "SELECT data.t AS v FROM readings WHERE false")
    assert (empty["rows"], [column["name"] for column in empty["columns"]]) == ([], ["v"])


async def test_a_large_answer_for_scripts_has_as_many_rows_as_fit(up: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST", 1000)
    page = await signed_in(up.cloud)
    (*_, last) = await streamed(page, up.cloud.first.organization, "SELECT repeat('a', 90) AS a FROM range(100)")
    assert (len(last["rows"]), last["count"]) == (9, 100)


MISTAKES: Final = {
    "SELECT 'ü'\n FROMM readings": "readings",
    "SELECT 'ü' AS a, nothing FROM readings": "nothing",
    "SELECT 'ü' AS a,\n upper(1, 2) FROM readings": "upper",
    "SELECT a FROM (SELECT 1 AS b)": "a FROM",
    "SELECT data.t FROM readings WHERE nofunction(1)": "nofunction",
}
"""Queries, and the text at which their mistake is shown."""


@pytest.mark.parametrize("query", MISTAKES)
async def test_a_mistake_has_a_position(up: Uploads, query: str) -> None:
    page = await signed_in(up.cloud)
    (*_, last) = await streamed(page, up.cloud.first.organization, query)
    place = last["position"]
    assert query[place:].startswith(MISTAKES[query]), last
    assert "query is not valid" in last["error"]
    assert "exception_type" not in last["error"]


async def test_a_mistake_in_a_changed_query_has_no_position(up: Uploads) -> None:
    page = await signed_in(up.cloud)
    query = "SELECT data->>'$.x', nothing FROM readings"
    (*_, last) = await streamed(page, up.cloud.first.organization, query)
    assert last["position"] is None
    assert "nothing" in last["error"]


async def test_the_page_has_the_answer_for_its_script(up: Uploads) -> None:
    page, organization = await signed_in(up.cloud), up.cloud.first.organization

    def embedded(reply: Reply) -> Any:
        (props,) = re.findall(r'data-props="([^"]*)"', reply.text)
        answer = json.loads(html.unescape(props))["answer"]
        return json.loads(answer) if answer else None

    assert embedded(await asked(page, "/sql", "SELECT '<' AS a", organization))["rows"] == [["<"]]
    assert embedded(await asked(page, "/sql", "SELECT x", organization))["position"] == 7
    assert embedded(await asked(page, "/sql", "SELECT repeat('a', 1000) FROM range(300)", organization)) is None


async def test_fields_of_readings_are_those_of_files_and_of_the_newest_readings(up: Uploads) -> None:
    page, organization = await signed_in(up.cloud), up.cloud.first.organization

    async def fields() -> dict[str, str]:
        reply = await page.send("GET", f"/sql/fields?organization={organization}", JSON)
        assert reply.status == 200
        content: dict[str, dict[str, str]] = json.loads(reply.text)
        assert content["columns"]["time_requested"] == "TIMESTAMP"
        return content["fields"]

    assert await fields() == {}
    await up.readings(piece(1, readings={"celsius": 20.5, "ok": True}), component_name="a")
    await up.readings(piece(2, readings={"words": ["x"], "a.b": 1.0}), piece(3, name="x"), component_name="b")
    assert await fields() == {"name": "VARCHAR", "readings.celsius": "DOUBLE", "readings.ok": "BOOLEAN"}
    await up.readings(piece(4, readings={"words": ["x"], 'a"b': 1.0, "large": "x"}), component_name="b")
    assert (await fields())["readings.words"] == "JSON"
    assert "name" not in await fields()
    reply = await page.send("GET", "/sql/fields?organization=none", JSON)
    assert reply.status == 404


# ---- saved queries


async def test_queries_are_saved_renamed_changed_and_deleted(up: Uploads) -> None:
    page, organization = await signed_in(up.cloud), up.cloud.first.organization
    reply = await post(page, "/sql/saved", organization=organization, name="hot", query="SELECT\r\n1 AS a")
    assert reply.status == 303
    target = reply.headers["location"]
    shown = await page.send("GET", target, HTML)
    assert ">SELECT\n1 AS a</textarea>" in shown.text
    assert f'href="{target}"' in shown.text, "in the list"
    subject = target.rpartition("=")[2]
    again = await post(page, "/sql/saved", organization=organization, name="hot", query="SELECT 2")
    assert again.status == 409
    await post(page, f"/sql/saved/{subject}/change", name="cold", query="")
    await post(page, f"/sql/saved/{subject}/change", name="", query="SELECT 3 AS a")
    shown = await page.send("GET", target, HTML)
    assert ">SELECT 3 AS a</textarea>" in shown.text
    assert "cold" in shown.text
    assert (await post(page, f"/sql/saved/{subject}/other")).status == 404
    assert (await post(page, "/sql/saved", organization=organization, name="x", query=" ")).status == 400
    assert (await post(page, f"/sql/saved/{subject}/delete")).headers["location"] == f"/sql?organization={organization}"
    assert (await page.send("GET", target, HTML)).status == 404


async def test_saved_queries_are_those_of_the_organization(up: Uploads) -> None:
    cloud, organization = up.cloud.cloud, up.cloud.first.organization
    other = await cloud.store.write(lambda sql: create_owner(sql, "Other", now()))
    page, stranger = await signed_in(up.cloud), await signed_in(up.cloud, (other.id, other.key))
    reply = await post(page, "/sql/saved", organization=organization, name="mine", query="SELECT 1")
    subject = reply.headers["location"].rpartition("=")[2]
    for path, fields in (
        ("/sql/saved", {"organization": organization, "name": "a", "query": "SELECT 1"}),
        (f"/sql/saved/{subject}/change", {"name": "a"}),
        (f"/sql/saved/{subject}/delete", {}),
    ):
        assert (await post(stranger, path, **fields)).status in (403, 404)
    assert (await stranger.send("GET", f"/sql?saved={subject}", HTML)).status == 404
    assert "mine" not in (await stranger.send("GET", "/sql", HTML)).text
    assert (await page.send("GET", f"/sql?saved={subject}", HTML)).status == 200


async def test_saved_queries_end_with_their_organization(up: Uploads) -> None:
    cloud = up.cloud.cloud
    other = await cloud.store.write(lambda sql: create_owner(sql, "Other", now()))
    await cloud.store.write(lambda sql: saved.create(sql, other.organization, "a", saved.SQL, "SELECT 1", now()))

    def deleted(sql: Sql) -> int:
        for location in sql.rows("SELECT id FROM locations WHERE organization_id = ?", other.organization):
            delete_location(sql, location["id"])
        delete_organization(sql, other.organization)
        return len(saved.saved_queries(sql, other.organization, saved.SQL, 10))

    assert await cloud.store.write(deleted) == 0


class EndlessQuery:
    """A service whose query reports a stage and never ends."""

    def __init__(self) -> None:
        self.ended = trio.Event()

    async def tabular_answer(self, organization: str, query: str, report: Any) -> Any:
        try:
            report(QueryStage.RUNNING, 1)
            await trio.sleep_forever()
        finally:
            self.ended.set()


@pytest.mark.parametrize("way", ["does not read", "leaves"])
async def test_a_caller_that_does_not_read_or_leaves_ends_its_query(way: str, autojump_clock: Any) -> None:
    service: Any = EndlessQuery()
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)
        if message["type"] == "http.response.body" and way == "does not read":
            await trio.sleep_forever()

    async def receive() -> Any:
        await trio.sleep_forever()

    begin = trio.current_time()
    with trio.move_on_after(100):
        await answers.StreamedAnswer(service, "o", "SELECT 1")({}, receive, send)
    assert service.ended.is_set()
    assert trio.current_time() - begin == (answers.LINE_LIMIT if way == "does not read" else 100)
    assert [message.get("more_body") for message in sent] == [None, True]  # no end: the answer is not complete
