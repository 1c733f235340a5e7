"""The data page, downloads by key and by link, and exports, through the guard."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet as parquet
import pytest

from cloud.domain.data.buckets import fields_of
from cloud.domain.data.readings import ReadingRecord
from cloud.domain.data.sources import DataSource
from cloud.domain.data.table import ColumnKind, cells, flat, widen
from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key
from cloud.server.memory import MemoryCloud
from cloud.values.buckets import buckets_of
from cloud.values.times import stored
from cloud.web.views.data_view import MAX_COLUMNS, MAX_SHOWN, DataQuery, amount
from cloud.web.views.plots import HEIGHT, WIDTH, Plot, plot
from cloud.work.workroom import Workroom
from schema.errors import MachineError
from support.text.words import bytes_text
from tests.unit.cloud.captured import PNG, SETS, START, Uploads, at, piece
from tests.unit.cloud.pages import browser, post, signed_in
from tests.unit.runtime.parts.web.client import HTML, Browser, Reply

BOX = {"x_min_normalized": 0.1, "y_min_normalized": 0.2, "x_max_normalized": 0.5, "y_max_normalized": 0.6}


@pytest.fixture
def up(cloud: MemoryCloud, part: str) -> Uploads:
    return Uploads(cloud, part)


@pytest.fixture
async def page(cloud: MemoryCloud) -> Browser:
    return await signed_in(cloud)


async def get(created: Browser, path: str, **headers: str) -> Reply:
    return await created.send("GET", path, {**HTML, **headers})


# ---- page


async def test_an_empty_cloud_shows_a_hint(page: Browser) -> None:
    assert "No machine has uploaded a file yet" in (await get(page, "/data")).text
    assert "No machine has uploaded a reading yet" in (await get(page, "/data?view=readings")).text


async def test_images_with_boxes_and_files_with_names(up: Uploads, page: Browser) -> None:
    subject = await up.picture(0, tags=["<b>"])
    await up.ask("add_bounding_box_to_image_by_id", binary_data_id=subject, label="cat & dog", **BOX)
    document = await up.file(b"x" * 1234, "notes.txt")
    text = (await get(page, "/data")).text
    assert f'<img src="/files/{subject}/thumbnail"' in text
    assert '<rect x="10.00" y="20.00" width="40.00" height="40.00"><title>cat &amp; dog</title>' in text
    assert f'href="/files/{document}">notes.txt' in text
    assert "1.23 kB" in text
    assert "&lt;b&gt;" in text
    assert "<b>" not in text
    chosen = (await get(page, f"/data?tag=%3Cb%3E&machine=rover&part={up.part}")).text
    assert subject in chosen
    assert document not in chosen
    assert "No files match" in (await get(page, "/data?component=nothing")).text


async def test_readings_with_plots(up: Uploads, page: Browser) -> None:
    await up.readings(*(piece(number, readings={"t": float(number), "ok": True}) for number in range(3)))
    text = (await get(page, "/data?view=readings&plots=drawn")).text
    assert "rover s t" in text
    assert f'points="0.0,{HEIGHT}.0 {WIDTH / 2},{HEIGHT / 2} {WIDTH}.0,0.0"' in text
    assert text.count('<th scope="row">') == 3
    assert text.index("00:00:02") < text.index("00:00:00.000")  # newest first
    assert '<input type="hidden" name="plots" value="drawn">' in text
    text = (await get(page, "/data?view=readings")).text  # the scripts of the page read the numbers
    assert "<polyline" not in text
    assert 'href="/data?view=readings&amp;plots=drawn">Draw the plots without scripts</a></p></noscript>' in text


async def test_readings_are_a_table_with_a_column_for_each_field(up: Uploads, page: Browser) -> None:
    nested = {"gps": {"lat": 47.25, "fix": True}, "name": "<b>", "speed": 3.0, "list": [1, 2]}
    await up.readings(piece(0, readings=nested), piece(1, readings={"speed": "stopped"}), piece(2, other=1))
    text = (await get(page, "/data?view=readings")).text
    head, body = text.partition("<tbody>")[0], text.partition("<tbody>")[2].partition("</tbody>")[0]
    names = re.findall(r'<th scope="col"( class="right")?>([^<]+)<', head)
    assert [name for _, name in names][-6:] == ["other", "gps.fix", "gps.lat", "list", "name", "speed"]
    assert [name for right, name in names if right] == ["other", "gps.fix", "gps.lat"]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row)[1:] for row in body.split("</tr>")][:3]
    assert rows == [
        ["1", "", "", "", "", ""],
        ["", "", "", "", "", "stopped"],
        ["", "true", "47.25", "[1.0, 2.0]", "&lt;b&gt;", "3"],
    ]
    assert "Other values" not in text
    wide = {f"f{number:02}": "x" * 1000 for number in range(MAX_COLUMNS + 1)}
    await up.readings(piece(5, **wide))
    text = (await get(page, "/data?view=readings&start=2026-01-01T00:00:05")).text
    assert text.count('<th scope="col"') == MAX_COLUMNS + 3
    assert "Other values" in text
    assert "x" * (MAX_SHOWN + 1) not in text


async def test_a_plot_covers_the_range_and_not_the_page(up: Uploads, page: Browser) -> None:
    minutes = 45
    await up.readings(*(piece(60.0 * number, readings={"t": float(number)}) for number in range(-900, minutes * 6)))
    text = (await get(page, "/data?view=readings&plots=drawn&start=2026-01-01T00:00&end=2026-01-01T04:30")).text
    assert "270 values from 0 to 269" in text
    assert re.search("2026-01-01 00:00:00 UTC</time> to <time [^>]*>2026-01-01 04:29:00 UTC</time>", text)
    text = (await get(page, "/data?view=readings&plots=drawn")).text  # the day before the newest reading
    assert "1170 values from -900 to 269" in text
    assert re.search("2025-12-31 09:00:00 UTC</time> to <time [^>]*>2026-01-01 04:29:00 UTC</time>", text)
    link = text.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0].replace("&amp;", "&")
    assert "970 values from -900 to 69" in (await get(page, link)).text


async def test_data_of_a_machine_are_on_its_own_page(up: Uploads, cloud: MemoryCloud, page: Browser) -> None:
    await up.readings(piece(0, t=1.0))
    text = (await get(page, f"/data?view=readings&part={up.part}")).text
    assert "<title>Data of rover</title>" in text
    assert f'<a href="/data?part={up.part}" aria-current="page">Data</a>' in text
    assert 'name="machine"' not in text
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", START))
    stranger = await signed_in(cloud, (other.id, other.key))
    for asking, subject in ((stranger, up.part), (page, "nothing")):
        reply = await get(asking, f"/data?part={subject}")
        assert reply.status == 200
        assert "rover" not in reply.text
        assert 'aria-label="Pages of this machine"' not in reply.text


async def test_older_data_are_on_the_next_page(up: Uploads, page: Browser) -> None:
    await up.readings(*(piece(number, n=f"value-{number:03}") for number in range(201)))
    text = (await get(page, "/data?view=readings")).text
    assert "value-200" in text
    assert "value-000" not in text
    link = text.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0].replace("&amp;", "&")
    text = (await get(page, link)).text
    assert "value-000" in text
    assert 'rel="next"' not in text


@pytest.mark.parametrize(
    ("view", "after", "length", "more", "words"),
    [
        ("readings", "", 0, False, "0 readings"),
        ("files", "", 1, False, "1 file"),
        ("readings", "", 200, True, "the newest 200 readings"),
        ("files", "1.2", 60, True, "60 older files"),
        ("readings", "1.2", 1, False, "1 older reading"),
    ],
)
def test_a_page_says_how_much_it_shows(view: str, after: str, length: int, more: bool, words: str) -> None:
    assert amount(DataQuery(view=view, after=after), length, more) == words


async def test_an_invalid_time_is_reported_on_the_page(page: Browser) -> None:
    reply = await get(page, "/data?start=yesterday")
    assert reply.status == 400
    assert "is not a time" in reply.text


async def test_data_are_separated_by_part(up: Uploads, page: Browser) -> None:
    subject = await up.picture(0)
    reply = await get(page, f"/machines/{up.part}/data")
    assert reply.status == 303
    assert subject in (await get(page, reply.headers["location"])).text
    assert "No files match" in (await get(page, "/data?part=other")).text


async def test_selected_files_are_tagged_added_and_deleted_after_confirmation(up: Uploads, page: Browser) -> None:
    subject = await up.picture(0)
    reply = await post(page, "/data/change", id=subject, action="tag", new_tag="good", component="eye")
    assert (reply.status, reply.headers["location"]) == (303, "/data?view=files&component=eye")
    assert await up.ids(tags_filter={"tags": ["good"]}) == [subject]
    assert (await post(page, "/data/change", id=subject, action="dataset", new_dataset="cats")).status == 303
    (created,) = await up.owner.call(
        SETS, "", "list_datasets_by_organization_id", organization_id=up.cloud.first.organization
    )
    assert await up.ids(dataset_id=created["id"]) == [subject]
    reply = await post(page, "/data/change", id=subject, action="delete")
    assert "Delete 1 file?" in reply.text
    assert await up.ids() == [subject]
    assert (await post(page, "/data/change", id=subject, action="delete", sure="yes")).status == 303
    assert await up.ids() == []


@pytest.mark.parametrize(
    "form", [{"action": "tag"}, {"action": "nothing", "id": "x"}, {"action": "tag", "id": "x", "new_tag": ""}]
)
async def test_an_incomplete_form_is_refused_with_a_reason(page: Browser, form: dict[str, str]) -> None:
    reply = await post(page, "/data/change", **form)
    assert reply.status in (400, 404)
    assert 'role="alert"' in reply.text


async def test_a_refused_action_keeps_the_selection_and_what_was_entered(up: Uploads, page: Browser) -> None:
    selected, other = await up.picture(0), await up.picture(1)
    reply = await post(page, "/data/change", id=selected, action="dataset", new_tag="good <b>")
    assert reply.status == 400
    assert "no dataset is selected" in reply.text.lower()
    assert f'value="{selected}" checked>' in reply.text
    assert f'value="{other}">' in reply.text
    assert 'name="new_tag" value="good &lt;b&gt;"' in reply.text
    reply = await post(page, "/data/change", id=selected, action="tag", new_dataset="cats")
    assert f'value="{selected}" checked>' in reply.text
    assert 'name="new_dataset" value="cats"' in reply.text


async def test_retention_of_data_is_shown_and_changed(up: Uploads, page: Browser) -> None:
    organization = up.cloud.first.organization
    assert (await post(page, "/data/retention", organization=organization, days="30")).status == 303
    assert 'value="30"' in (await get(page, "/data")).text
    for days in ("-1", "x", "99999", "١"):
        assert (await post(page, "/data/retention", organization=organization, days=days)).status == 400
    assert 'value="30"' in (await get(page, "/data")).text


async def test_an_operator_reads_but_does_not_delete(up: Uploads) -> None:
    subject = await up.picture(0)
    organization = up.cloud.first.organization
    grant = Grant("operator", "organization", organization)
    key = await up.cloud.cloud.store.write(lambda sql: create_key(sql, organization, "guard", [grant], START))
    await up.cloud.cloud.authenticator.load()
    guard = await signed_in(up.cloud, key)
    page = (await get(guard, "/data")).text
    assert subject in page
    assert ": forever</p>" in page  # visible, but not editable
    assert 'action="/data/retention"' not in page
    assert (await post(guard, "/data/change", id=subject, action="delete", sure="yes")).status == 403
    assert (await post(guard, "/data/retention", organization=organization, days="1")).status == 403
    assert await up.ids() == [subject]


# ---- files


async def test_a_file_is_downloaded_with_a_key_completely_or_by_range(up: Uploads, page: Browser) -> None:
    subject = await up.file(bytes(range(256)) * 10, "numbers.bin")
    reply = await get(page, f"/files/{subject}")
    assert reply.status == 200
    assert reply.body == bytes(range(256)) * 10
    assert reply.headers["content-disposition"] == 'attachment; filename="numbers.bin"'
    assert "sandbox" in reply.headers["content-security-policy"]
    part = await get(page, f"/files/{subject}", range="bytes=250-260")
    assert (part.status, part.headers["content-range"]) == (206, "bytes 250-260/2560")
    assert part.body == bytes([*range(250, 256), *range(5)])
    assert (await get(page, "/files/nothing")).status == 404
    assert (await get(browser(up.cloud), f"/files/{subject}")).status == 401


async def test_an_uploaded_html_page_runs_no_scripts(up: Uploads, page: Browser) -> None:
    subject = await up.file(b"<script>alert(1)</script>", 'x".html\r\nset-cookie: a=b')
    reply = await get(page, f"/files/{subject}")
    assert reply.headers["content-disposition"].startswith("attachment; filename=")
    assert reply.headers["content-disposition"].count('"') == 2
    assert reply.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert "set-cookie" not in reply.headers
    picture = await up.picture(0)
    assert (await get(page, f"/files/{picture}")).headers["content-disposition"].startswith("inline")


async def test_a_signed_link_opens_one_file_for_a_limited_time(up: Uploads, clock: Any) -> None:
    subject, other = await up.picture(0), await up.picture(1)
    created = await up.ask("create_binary_data_signed_url", binary_data_id=subject)
    assert created["expires_at"] - clock.now < timedelta(minutes=15)
    link = urlsplit(created["signed_url"])
    stranger = browser(up.cloud)
    assert (await get(stranger, f"{link.path}?{link.query}")).body == PNG
    assert (await get(stranger, f"/files/{other}?{link.query}")).status == 403
    assert (await get(stranger, f"{link.path}?{link.query}0")).status == 403
    clock.now += timedelta(minutes=16)
    assert (await get(stranger, f"{link.path}?{link.query}")).status == 403
    created = await up.ask("create_binary_data_signed_url", binary_data_id=subject, expiration_minutes=10_080)
    assert timedelta(days=6) < created["expires_at"] - clock.now < timedelta(days=7)
    with pytest.raises(MachineError):
        await up.ask("create_binary_data_signed_url", binary_data_id=subject, expiration_minutes=10_081)


# ---- exports


async def exported(page: Browser, format_: str, query: str = "") -> Reply:
    reply = await get(page, f"/data/export?view=readings&format={format_}&{query}")
    assert reply.status == 200, reply.text
    return reply


async def fill(up: Uploads) -> None:
    await up.readings(piece(0, readings={"t": 1.5, "ok": True, "mixed": 1.0, "deep": {"x": 2.0}}), tags=["a", "b"])
    await up.readings(piece(1, readings={"t": -2.0, "mixed": "=1+1", "list": [1.0, "ü"], "none": None}))


async def test_csv_has_a_column_per_value(up: Uploads, page: Browser) -> None:
    await fill(up)
    reply = await exported(page, "csv", "component=s")
    assert reply.headers["content-disposition"] == 'attachment; filename="readings.csv"'
    first, second = csv.DictReader(io.StringIO(reply.body.decode()))
    assert first["time_requested"] == "2026-01-01T00:00:00Z"
    assert (first["robot_name"], first["component_type"], first["tags"]) == ("rover", "sensor", "a b")
    assert (first["readings.t"], first["readings.ok"], first["readings.deep.x"]) == ("1.5", "true", "2.0")
    assert (first["readings.mixed"], second["readings.mixed"]) == ("1.0", "'=1+1")  # not a formula
    assert (second["readings.t"], second["readings.ok"], json.loads(second["readings.list"])) == ("-2.0", "", [1, "ü"])
    assert "readings.none" not in first


async def test_parquet_has_the_same_with_types(up: Uploads, page: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.domain.data.exports.ROWS_A_GROUP", 1)
    await fill(up)
    table = parquet.read_table(io.BytesIO((await exported(page, "parquet")).body), use_threads=False)
    first, second = table.to_pylist()
    assert first["time_requested"] == at(0)
    assert (first["readings.t"], first["readings.ok"], first["readings.deep.x"]) == (1.5, True, 2.0)
    assert (second["readings.mixed"], second["readings.ok"]) == ("=1+1", None)
    assert (first["tags"], second["tags"]) == ("a b", "")


async def test_values_beyond_the_column_limit_are_in_the_last_column(
    up: Uploads, page: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloud.domain.data.table.MAX_COLUMNS", 2)
    await up.readings(piece(0, readings={"a": 1.0, "b": True}))
    await up.readings(piece(1, readings={"a": 2.0, "c": "ü", "d": 4.0}))
    first, second = csv.DictReader(io.StringIO((await exported(page, "csv")).body.decode()))
    assert list(first)[-3:] == ["readings.a", "readings.b", "other_values"]
    assert (first["other_values"], second["readings.a"]) == ("", "2.0")
    assert json.loads(second["other_values"]) == {"readings.c": "ü", "readings.d": 4.0}
    rows = parquet.read_table(io.BytesIO((await exported(page, "parquet")).body), use_threads=False).to_pylist()
    assert [row["other_values"] for row in rows] == [None, second["other_values"]]


def test_a_value_called_other_values_is_kept() -> None:
    source = DataSource("organization", "location", "machine", "rover", "part", "rover-main")
    reading = ReadingRecord(1, 1, source, (), at(0), at(0), at(0), '{"other_values": 1, "a": 2}')
    columns: dict[str, ColumnKind] = {}
    widen(columns, [reading])
    assert dict(zip(columns, cells(reading, columns), strict=True)) == {
        "other_values": '{"other_values": 1.0}',
        "a": 2.0,
    }


async def test_an_empty_export_is_a_file(page: Browser) -> None:
    assert (await exported(page, "csv")).text.startswith("time_requested,time_received,")
    assert parquet.read_table(io.BytesIO((await exported(page, "parquet")).body)).num_rows == 0
    assert (await get(page, "/data/export?format=xls")).status == 400


async def test_an_export_of_several_pages_has_everything(
    up: Uploads, page: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloud.services.data.data_tabular.MAX_PAGE", 3)
    await up.readings(*(piece(number, n=float(number)) for number in range(10)))
    rows = list(csv.DictReader(io.StringIO((await exported(page, "csv")).text)))
    assert [float(row["n"]) for row in rows] == list(range(10))


@pytest.mark.parametrize("format_", ["csv", "parquet"])
async def test_exports_run_in_the_workroom(
    up: Uploads, page: Browser, format_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(up)
    asked: list[str] = []
    run = Workroom.run

    async def counted(self: Workroom, organization: str, function: Any) -> Any:
        asked.append(organization)
        return await run(self, organization, function)

    monkeypatch.setattr(Workroom, "run", counted)
    await exported(page, format_)
    assert len(asked) >= 2


# ---- helpers of the page


def test_values_by_their_paths() -> None:
    assert flat({"a": {"b": {"c": 1}}, "d": [1], "e": None, "f": "x", "g": False}) == {
        "a.b.c": 1.0,
        "d": "[1]",
        "f": "x",
        "g": False,
    }
    deep: dict[str, Any] = {}
    for _ in range(50):
        deep = {"x": deep}
    assert len(flat({"a": {**deep, "y": 1}})) == 2
    assert max(ColumnKind.NUMBER, ColumnKind.TEXT) is ColumnKind.TEXT


def drawn(values: list[tuple[float, float]], points: int = WIDTH) -> Plot:
    """Return a plot of seconds after START and numbers."""
    readings = [(stored(at(second)), f'{{"x": {value}}}') for second, value in values]
    buckets = buckets_of(readings[0][0], readings[-1][0] + 1, points)
    ((x,), _) = fields_of(readings, buckets, 1)
    return plot("x", x, buckets)


def test_a_plot_keeps_its_extremes_with_many_values() -> None:
    values = [(float(number), float(number % 7)) for number in range(10_000)]
    values[5000] = (5000.0, 100.0)
    created = drawn(values)
    points = [tuple(map(float, part.split(","))) for part in created.points.split()]
    assert len(points) <= 2 * WIDTH
    assert (created.low, created.high, created.count) == (0.0, 100.0, 10_000)
    assert (created.first_time, created.last_time) == (at(0), at(9999))
    assert min(y for _, y in points) == 0.0
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)


def test_a_plot_of_few_values() -> None:
    assert len(drawn([(0, 5.0)]).points.split()) == 2
    assert drawn([(0, 5.0), (1, 5.0)]).points == f"0.0,{HEIGHT}.0 {WIDTH}.0,{HEIGHT}.0"


def test_the_query_of_the_address_is_parsed() -> None:
    asked = DataQuery.of({"view": "readings", "start": "2026-01-01T12:00", "end": "2026-01-01T14:00+02:00", "x": "y"})
    interval = asked.filter().interval
    assert interval is not None
    assert interval.start == interval.end == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert asked.encoded(end="") == "view=readings&start=2026-01-01T12%3A00"
    assert not DataQuery.of({"view": "odd"}).narrowed


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (999_499, "999 kB"), (10**6, "1 MB"), (10**15, "1e+03 TB")],
)
def test_sizes_in_words(size: int, text: str) -> None:
    assert bytes_text(size) == text
