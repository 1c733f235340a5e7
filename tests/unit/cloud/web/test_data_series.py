"""`GET /data/series`: numbers for plots as JSON, through the guard."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from cloud.domain.data import series as domain
from cloud.domain.organizations.first import create_owner
from cloud.server.memory import MemoryCloud
from cloud.values.times import now, stored
from tests.unit.cloud.captured import START, Uploads, at, piece
from tests.unit.cloud.pages import browser, signed_in
from tests.unit.runtime.parts.web.client import Browser, Reply

MILLISECONDS = stored(START) / 1000
EXAMPLES = Path(__file__).resolve().parents[4] / "examples" / "grafana"


@pytest.fixture
def up(cloud: MemoryCloud, part: str) -> Uploads:
    return Uploads(cloud, part)


@pytest.fixture
async def page(cloud: MemoryCloud) -> Browser:
    return await signed_in(cloud)


async def get(visitor: Browser, **query: Any) -> Reply:
    return await visitor.send("GET", f"/data/series?{urlencode(query, doseq=True)}", {"accept": "*/*"})


async def series(visitor: Browser, **query: Any) -> dict[str, Any]:
    reply = await get(visitor, **query)
    assert reply.status == 200, reply.text
    assert reply.headers["content-type"] == "application/json"
    answer: dict[str, Any] = json.loads(reply.text)
    return answer


async def test_numbers_of_a_range_in_buckets_with_gaps(up: Uploads, page: Browser) -> None:
    readings = {"level": 0.0, "on": True, "name": "tank"}
    times = (0, 10, 20, 21, 60)
    await up.readings(*(piece(second, readings={**readings, "level": float(second)}) for second in times))
    answer = await series(
        page, view="readings", machine="rover", **{"from": at(0).isoformat()}, to="2026-01-01T00:01:10Z", points=8
    )
    assert (answer["from"], answer["to"], answer["step"]) == (MILLISECONDS, MILLISECONDS + 70_000, 10_000)
    assert answer["times"] == [MILLISECONDS + 10_000 * number for number in range(7)]
    assert (answer["sampled"], answer["more"]) == (False, False)
    (tank,) = answer["series"]
    assert (tank["machine"], tank["component"], tank["method"], tank["type"]) == ("rover", "s", "Readings", "sensor")
    level, on = tank["fields"]
    assert (level["name"], on["name"]) == ("readings.level", "readings.on")
    assert (level["boolean"], on["boolean"]) == (False, True)
    assert level["min"] == [0, 10, 20, None, None, None, 60]
    assert level["max"] == [0, 10, 21, None, None, None, 60]
    assert level["mean"] == [0, 10, 20.5, None, None, None, 60]
    assert level["count"] == [1, 1, 2, 0, 0, 0, 1]
    assert level["last"] == {"time": MILLISECONDS + 60_000, "value": 60}
    assert on["mean"] == [1, 1, 1, None, None, None, 1]


async def test_a_zoomed_range_has_finer_buckets_and_chosen_fields(up: Uploads, page: Browser) -> None:
    await up.readings(*(piece(second, a=second, b=-second) for second in range(100)))
    whole = await series(page, points=11)
    part = await series(
        page, points=11, field=["b"], start=at(10).isoformat(), **{"from": at(5).isoformat(), "to": at(15).isoformat()}
    )
    assert (whole["step"], part["step"]) == (10_000, 500)
    (b,) = part["series"][0]["fields"]
    assert [mean for mean in b["mean"] if mean is not None] == [-10, -11, -12, -13, -14]
    assert part["series"][0]["others"] == ["a"]


async def test_the_answer_names_sampled_series(up: Uploads, page: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain, "MOST", 50)
    await up.readings(*(piece(second, x=second) for second in range(100)))
    answer = await series(page, points=20)
    assert answer["sampled"]
    assert answer["series"][0]["sampled"]
    assert all(answer["series"][0]["fields"][0]["count"])


async def test_a_range_without_readings_is_empty(up: Uploads, page: Browser) -> None:
    nothing: dict[str, Any] = {"step": None, "times": [], "sampled": False, "more": False, "series": []}
    assert await series(page) == {**nothing, "from": None, "to": None}
    await up.readings(piece(0, x=1))
    answer = await series(page, **{"from": at(1).isoformat(), "to": at(2).isoformat()})
    assert answer == {**nothing, "from": MILLISECONDS + 1000, "to": MILLISECONDS + 2000}


@pytest.mark.parametrize(
    ("query", "path", "value", "remedy"),
    [
        ({"points": "2001"}, "points", 2001, "use a number from 2 to 2000"),
        ({"points": "1"}, "points", 1, "use a number from 2 to 2000"),
        ({"points": "-5"}, "points", "-5", "use a number from 2 to 2000"),
        ({"points": "٥"}, "points", "٥", "use a number from 2 to 2000"),
        ({"from": "now"}, "from", "now", "write it as 2026-01-31T12:00"),
        ({"to": "x" * 50}, "to", "x" * 40, "write it as 2026-01-31T12:00"),
        ({"start": "x"}, "start", "x", "write it as 2026-01-31T12:00"),
        ({"from": "2026-01-01", "end": "2026-01-01"}, "to", "2026-01-01T00:00:00+00:00", "use a time after its start"),
        ({"field": [str(number) for number in range(41)]}, "field", 41, "name at most 40"),
    ],
)
async def test_an_invalid_query_is_refused_with_path_value_and_remedy(
    page: Browser, query: dict[str, Any], path: str, value: Any, remedy: str
) -> None:
    reply = await get(page, **query)
    assert reply.status == 400
    said = json.loads(reply.text)
    assert (said["path"], said["value"], said["remedy"]) == (path, value, remedy)
    assert said["error"].startswith(f"{path}: ")
    assert said["error"].endswith(remedy)


async def test_others_see_nothing(up: Uploads, cloud: MemoryCloud, page: Browser) -> None:
    await up.readings(piece(0, x=1))
    assert len((await series(page))["series"]) == 1
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", START))
    stranger = await signed_in(cloud, (other.id, other.key))
    assert (await series(stranger, part=up.part))["series"] == []
    assert (await get(browser(cloud))).status == 401


# ---- rows, for programs such as Grafana


def basic(subject: str, secret: str) -> dict[str, str]:
    return {"authorization": "Basic " + b64encode(f"{subject}:{secret}".encode()).decode(), "accept": "*/*"}


async def test_rows_are_the_buckets_with_numbers_in_the_order_of_time(
    cloud: MemoryCloud, up: Uploads, page: Browser
) -> None:
    await up.readings(*(piece(second, level=float(second), on=True) for second in (0, 10, 11, 60)))
    answer = await page.send(
        "GET", f"/data/rows?{urlencode({'from': int(MILLISECONDS), 'to': int(MILLISECONDS) + 70_000, 'points': 8})}"
    )
    rows = json.loads(answer.text)
    assert [(row["time"] - MILLISECONDS, row["field"], row["mean"], row["count"]) for row in rows] == [
        (0, "level", 0, 1),
        (0, "on", 1, 1),
        (10_000, "level", 10.5, 2),
        (10_000, "on", 1, 2),
        (60_000, "level", 60, 1),
        (60_000, "on", 1, 1),
    ]
    assert (rows[2]["min"], rows[2]["max"]) == (10, 11)
    assert {(row["machine"], row["component"], row["method"]) for row in rows} == {("rover", "s", "Readings")}
    assert (await page.send("GET", "/data/rows?machine=none")).text == "[]"


async def test_programs_read_with_a_key_and_only_what_it_may_see(cloud: MemoryCloud, up: Uploads) -> None:
    await up.readings(piece(0, level=1.0))
    program = browser(cloud)
    for path in ("/data/rows", "/data/series", "/data/export?view=readings&format=csv"):
        allowed = await program.send("GET", path, basic(cloud.first.id, cloud.first.key))
        assert allowed.status == 200, (path, allowed.text)
        assert "level" in allowed.text
        for headers in ({"accept": "*/*"}, basic(cloud.first.id, "wrong")):
            assert (await program.send("GET", path, headers)).status == 401, path
    stranger = await cloud.cloud.store.write(lambda sql: create_owner(sql, "other", now()))
    assert json.loads((await program.send("GET", "/data/rows", basic(stranger.id, stranger.key))).text) == []


async def test_the_dashboard_for_grafana_asks_for_columns_that_the_cloud_answers(
    cloud: MemoryCloud, up: Uploads
) -> None:
    await up.readings(piece(0, level=1.0), piece(60, level=2.0))
    dashboard = json.loads((EXAMPLES / "dashboard.json").read_text())
    source = (EXAMPLES / "datasource.yaml").read_text()
    values = {
        "${__timeFrom}": at(-60).isoformat(),
        "${__timeTo}": at(600).isoformat(),
        "${machine}": "",
        "${component}": "s",
    }
    for panel in dashboard["panels"]:
        assert panel["datasource"]["type"] in source
        assert f"uid: {panel['datasource']['uid']}\n" in source
        for target in panel["targets"]:
            query = urlencode(
                [(each["key"], values.get(each["value"], each["value"])) for each in target["url_options"]["params"]]
            )
            reply = await browser(cloud).send("GET", f"{target['url']}?{query}", basic(cloud.first.id, cloud.first.key))
            rows = json.loads(reply.text)
            assert rows
            kinds = {"string": str, "number": float | int, "timestamp_epoch": float}
            for column in target["columns"]:
                assert all(isinstance(row[column["selector"]], kinds[column["type"]]) for row in rows), column
