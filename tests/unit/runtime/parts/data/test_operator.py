"""`machine data` on capture folders, without a server."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from command.cli import main
from rpc.api import messages
from runtime.parts.data.export import Export, _kinds, csv_, jsonl
from runtime.parts.data.files.encode import CaptureRecord, Times, encoder
from runtime.parts.data.files.files import CaptureFile
from runtime.parts.data.files.frames import framed
from runtime.parts.data.files.messages import CaptureSource
from runtime.parts.data.files.names import folder_of
from runtime.parts.data.methods import find
from runtime.parts.data.rows import Selection, captured_rows, flattened
from schema.names import API

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def nanoseconds(seconds: float) -> int:
    return round((START.timestamp() + seconds) * 1e9)


def reading(value: Any, seconds: float) -> bytes:
    (record,) = encoder(API.parse("rdk:component:sensor"), find(API.parse("rdk:component:sensor"), "Readings", ""))(
        value, Times(nanoseconds(seconds), nanoseconds(seconds) + 1000)
    )
    assert isinstance(record, CaptureRecord)
    return record.data


def picture(data: bytes, seconds: float) -> bytes:
    message = messages.load("app.datasync.v1.data_sync_pb2").SensorData(binary=data)
    message.metadata.time_requested.FromNanoseconds(nanoseconds(seconds))
    message.metadata.annotations.classifications.add(label="color")
    return framed(message.SerializeToString())


def file(folder: Path, source: CaptureSource, *parts: bytes, seconds: float = 0, closed: bool = True) -> Path:
    where = folder / folder_of(source.component_type, source.component_name, source.method)
    first = CaptureFile(where, source.header("image/png" if source.binary else ""), lambda: nanoseconds(seconds))
    first.append(b"".join(parts), len(parts))
    if closed:
        return first.finish()
    first.abandon()
    return first.path


THERMOMETER = CaptureSource("rdk:component:sensor", "thermometer", "Readings", {"unit": "K"}, ("a", "b"))
GAUGE = CaptureSource("rdk:component:sensor", "gauge", "Readings")
EYE = CaptureSource("rdk:component:camera", "eye", "GetImages", binary=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with ten readings of a thermometer in two files, two of a gauge, and one picture."""
    root = tmp_path / "capture"
    for first in (0, 5):
        parts = [reading({"temperature": 20 + n, "ok": n % 2 == 0}, n) for n in range(first, first + 5)]
        file(root, THERMOMETER, *parts, seconds=first)
    file(root, GAUGE, reading({"level": {"upper": 1.5, "lower": None}, "list": [1, 2], "text": 'a "b", c'}, 20))
    file(root, EYE, picture(b"png!", 30), seconds=30)
    return root


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["data", *map(str, arguments)], catch_exceptions=False)


# ---- ls


def test_ls_sums_up_each_method(folder: Path) -> None:
    done = run("ls", folder)
    assert done.exit_code == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0][:2] == ["CAPTURED", "READINGS"]
    assert lines[1][:4] == ["rdk:component:camera/eye", "GetImages", "1", "1"]
    assert lines[3][:4] == ["rdk:component:sensor/thermometer", "Readings", "10", "2"]


def test_ls_shows_incomplete_files_and_what_is_wrong(folder: Path) -> None:
    whole = next((folder / "rdk_component_sensor" / "thermometer" / "Readings").iterdir())
    whole.write_bytes(whole.read_bytes() + framed(b"\xff\xff\xff"))
    left = file(folder, GAUGE, reading({"level": 1}, 40), closed=False, seconds=40)
    cut = file(folder, GAUGE, reading({"level": 1}, 50), reading({"level": 2}, 51), closed=False, seconds=50)
    cut.write_bytes(cut.read_bytes()[:-1])
    done = run("ls", folder)
    assert done.exit_code == 1
    assert "1 left behind, 1 cut off" in done.stdout
    assert f"{whole}: damaged after 5 complete readings: byte" in done.stderr
    assert f"{cut}: cut off after 1 complete readings: byte" in done.stderr
    content = json.loads(run("ls", folder, "--json").stdout)
    states = {item["path"]: item["state"] for item in content["files"]}
    assert (states[str(whole)], states[str(left)], states[str(cut)]) == ("damaged", "left behind", "cut off")
    assert content["folder"] == str(folder)
    assert "left behind" in run("ls", folder, "--files").stdout


def test_a_file_that_was_only_cut_off_is_nothing_to_worry_about(folder: Path) -> None:
    cut = file(folder, GAUGE, reading({"level": 1}, 50), closed=False, seconds=50)
    cut.write_bytes(cut.read_bytes()[:-1])
    assert run("ls", folder).exit_code == 0


def test_ls_shows_files_that_are_being_written(folder: Path) -> None:
    where = folder / folder_of("rdk:component:sensor", "gauge", "Readings")
    writing = CaptureFile(where, GAUGE.header())
    writing.append(reading({"level": 1}, 60), 1)
    done = run("ls", folder)
    assert "1 being written" in done.stdout
    writing.finish()
    assert "being written" not in run("ls", folder).stdout


def test_an_empty_or_missing_folder_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no captured data" in run("ls", tmp_path).stdout
    monkeypatch.setenv("MACHINE_HOME", str(tmp_path / "home"))
    done = run("ls")
    assert done.exit_code == 1
    assert f"{tmp_path / 'home' / 'capture'} does not exist" in done.output
    (tmp_path / "home" / "capture").mkdir(parents=True)
    assert run("ls").exit_code == 0


# ---- rows


def test_rows_are_selected() -> None:
    assert Selection(since=START).has_time(START)
    assert not Selection(until=START).has_time(START)
    assert Selection(since=START, until=START + timedelta(seconds=1)).has_time(START)


@pytest.mark.parametrize(
    ("selection", "count"),
    [
        (Selection(), 12),
        (Selection(resource="thermometer"), 10),
        (Selection(resource="rdk:component:sensor/thermometer"), 10),
        (Selection(method="GetImages"), 1),
        (Selection(tag="a"), 10),
        (Selection(tag="c"), 0),
        (Selection(since=START + timedelta(seconds=3)), 9),
        (Selection(until=START + timedelta(seconds=3)), 3),
        (Selection("thermometer", since=START + timedelta(seconds=3), until=START + timedelta(seconds=5)), 2),
    ],
)
def test_a_selection_is_what_is_wanted(folder: Path, selection: Selection, count: int) -> None:
    assert len(list(captured_rows(folder, selection))) == count


def test_nested_values_become_columns() -> None:
    assert dict(flattened({"a": {"b": {"c": 1}, "d": [1]}, "e": {}})) == {"a.b.c": 1, "a.d": [1], "e": {}}


# ---- export


def test_csv_has_a_column_for_each_value(folder: Path) -> None:
    out = io.StringIO()
    export = Export(folder, Selection())
    csv_(export, out)
    results = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert len(results) == export.rows == 12
    thermometer = [item for item in results if item["component_name"] == "thermometer"]
    assert [element["readings.temperature"] for element in thermometer] == [str(20 + n) for n in range(10)]
    assert thermometer[0]["readings.ok"] == "true"
    assert thermometer[0]["time_requested"] == "2026-11-21T12:00:00.000000Z"
    assert thermometer[0]["additional_parameters"] == '{"unit":"K"}'
    assert thermometer[0]["tags"] == '["a","b"]'
    assert thermometer[0]["readings.level.upper"] == ""
    (gauge,) = (result for result in results if result["component_name"] == "gauge")
    assert gauge["readings.level.upper"] == "1.5"
    assert gauge["readings.level.lower"] == ""
    assert gauge["readings.text"] == 'a "b", c'
    assert json.loads(gauge["readings.list"]) == [1, 2]


def test_json_lines_keep_the_structure(folder: Path) -> None:
    out = io.StringIO()
    jsonl(Export(folder, Selection(resource="gauge")), out)
    (line,) = map(json.loads, out.getvalue().splitlines())
    assert line["data"] == {"readings": {"level": {"upper": 1.5, "lower": None}, "list": [1, 2], "text": 'a "b", c'}}
    assert line["component_type"] == "rdk:component:sensor"


def test_pictures_become_files(folder: Path, tmp_path: Path) -> None:
    out, media = tmp_path / "x.jsonl", tmp_path / "pictures"
    done = run("export", folder, "--resource", "eye", "--media", media, "-o", out)
    assert done.exit_code == 0, done.output
    line = json.loads(out.read_text())
    assert line["mime_type"] == "image/png"
    assert line["labels"] == ["color"]
    assert line["bytes"] == 4
    assert Path(line["file"]).read_bytes() == b"png!"
    assert Path(line["file"]).suffix == ".png"
    assert "1 readings, 1 files in" in done.stderr


def test_an_export_of_damaged_files_has_what_is_whole(folder: Path, tmp_path: Path) -> None:
    whole = sorted((folder / "rdk_component_sensor" / "thermometer" / "Readings").iterdir())[0]
    whole.write_bytes(whole.read_bytes()[:-5])
    out = tmp_path / "x.csv"
    done = run("export", folder, "--resource", "thermometer", "-o", out)
    assert done.exit_code == 0
    assert len(out.read_text().splitlines()) == 1 + 9
    assert f"{whole}: 4 complete readings were exported" in done.stderr


def test_standard_output_is_the_export_and_nothing_else(folder: Path) -> None:
    done = run("export", folder, "--format", "jsonl")
    assert len([json.loads(line) for line in done.stdout.splitlines()]) == 12
    assert done.stderr == "12 readings\n"


def test_a_failed_export_leaves_nothing_half_done(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.csv"
    out.write_text("before")
    unreadable = folder / "rdk_component_sensor" / "gauge" / "Readings" / "x.capture"
    unreadable.symlink_to(unreadable)
    assert run("export", folder, "-o", out).exit_code == 1
    assert out.read_text() == "before"
    done = run("export", folder, "-o", out / "beyond.csv")
    assert done.exit_code == 1
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "x.xls"], "is not a format"),
        (["--format", "parquet"], "Parquet is a binary format"),
        (["--since", "yesterday"], "is not a time such as"),
    ],
)
def test_wrong_usage_is_reported(folder: Path, arguments: list[str], words: str) -> None:
    done = run("export", folder, *arguments)
    assert done.exit_code == 2
    assert words in done.output


def test_a_column_of_several_kinds_is_text(folder: Path) -> None:
    file(folder, GAUGE, reading({"level": "empty", "only": True, "none": None}, 60), seconds=60)
    kinds = _kinds(Export(folder, Selection()))
    assert kinds["time_received"] == "time"
    assert kinds["readings.temperature"] == "number"
    assert kinds["readings.only"] == "bool"
    assert kinds["readings.level"] == "text"
    assert kinds["readings.list"] == "text"
    assert "readings.none" not in kinds
    file(folder, GAUGE, reading({"only": 5}, 70), seconds=70)
    assert _kinds(Export(folder, Selection()))["readings.only"] == "text"


def test_without_pyarrow_parquet_says_what_to_install(folder: Path, tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['pyarrow'] = None; from command.cli import main;"
        f"main(['data', 'export', {str(folder)!r}, '-o', {str(tmp_path / 'x.parquet')!r}])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install pyarrow" in done.stderr
    assert not (tmp_path / "x.parquet").exists()


def test_parquet_has_typed_columns(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet  # type: ignore[import-not-found, unused-ignore]

    out = tmp_path / "x.parquet"
    assert run("export", folder, "-o", out).exit_code == 0
    table = parquet.read_table(out)
    assert table.num_rows == 12
    types = {field.name: str(field.type) for field in table.schema}
    assert types["time_requested"] == "timestamp[us, tz=UTC]"
    assert types["readings.temperature"] == "double"
    assert types["readings.ok"] == "bool"
    assert types["readings.list"] == "string"
    results = [item for item in table.to_pylist() if item["component_name"] == "thermometer"]
    assert [element["readings.temperature"] for element in results] == [20.0 + n for n in range(10)]
    assert results[0]["time_requested"] == START


# ---- tail


def test_tail_prints_the_newest(folder: Path) -> None:
    done = run("tail", folder, "-n", "2", "--resource", "thermometer")
    results = [json.loads(line)["data"]["readings"]["temperature"] for line in done.stdout.splitlines()]
    assert results == [28.0, 29.0]
    assert json.loads(run("tail", folder, "-n", 1).stdout)["component_name"] == "eye"
