"""The page for SQL: questions by link, answers as a table and as a file, through the guard."""

from __future__ import annotations

import csv
import io
from urllib.parse import urlencode

import pytest

from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key
from cloud.domain.queries.query import EXAMPLES
from cloud.server.memory import MemoryCloud
from cloud.values.times import now
from cloud.web.pages.sql import SHOWN
from tests.unit.cloud.captured import START, Uploads, piece
from tests.unit.cloud.pages import signed_in
from tests.unit.runtime.parts.web.client import HTML, Browser, Reply

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
