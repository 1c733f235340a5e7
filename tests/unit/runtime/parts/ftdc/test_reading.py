"""How `machine ftdc` selects files and shows them: rates, tables, plots, CSV and JSON lines."""

from __future__ import annotations

import csv
import io
import json
import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from command.cli import main
from command.recordings.ftdc_read import GAP, chosen, find, joined, load, matching, shown
from command.recordings.ftdc_show import clock
from schema.errors import MachineError
from telemetry.metrics.ftdc import FtdcEncoder, Series, read_ftdc

SECOND = 1_000_000_000
BEGIN = 1_767_355_200 * SECOND  # 2026-01-02T12:00:00Z


def write(path: Path, taken: list[dict[str, float]], *, begin: int = BEGIN) -> Path:
    encoder = FtdcEncoder()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(encoder.encode(begin + n * SECOND, values) for n, values in enumerate(taken)))
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "diagnostics.data" / "local-config"
    write(folder / "machine-server-2026-01-02T11-00-00Z.ftdc", [{"a.State": 3.0}], begin=BEGIN - 3600 * SECOND)
    write(
        folder / "machine-server-2026-01-02T12-00-00Z.ftdc",
        [{"a.State": float(n == 2), "rpc.m.stop.Calls": 10.0 * n, "proc.x.RssMB": 40.0 + n} for n in range(4)],
    )
    return tmp_path


def ftdc(*arguments: str | Path, home: Path, columns: int = 200) -> Result:
    runner = CliRunner(env={"MACHINE_HOME": str(home), "COLUMNS": str(columns)})
    return runner.invoke(main, ["ftdc", *map(str, arguments)])


def test_the_newest_file_is_meant_unless_others_are_named(home: Path) -> None:
    everything = find([], home)
    assert [path.name[15:28] for path in everything] == ["2026-01-02T11", "2026-01-02T12"]
    assert chosen([], home) == everything[-1:]
    assert chosen([home / "diagnostics.data"], None) == everything
    assert chosen([everything[0]], home) == everything[:1]


def test_files_that_are_not_there(home: Path, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="does not exist"):
        find([home / "no.ftdc"], home)
    (tmp_path / "empty").mkdir()
    with pytest.raises(MachineError, match="no diagnostic data"):
        find([], tmp_path / "empty")


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="cannot be read: Is a directory"):
        load(tmp_path)


def test_counters_are_shown_by_their_rate() -> None:
    series = Series([BEGIN, BEGIN + 2 * SECOND, BEGIN + 3 * SECOND], [10.0, 30.0, 35.0])
    assert shown("rpc.x.stop.Calls", series).unit == "1/s"
    assert shown("rpc.x.stop.Calls", series).points == [(BEGIN + 2 * SECOND, 10.0), (BEGIN + 3 * SECOND, 5.0)]
    assert shown("proc.x.RssMB", series).points == list(zip(series.times, series.values, strict=True))


def test_no_rate_across_a_gap_or_a_restarted_counter() -> None:
    times = [BEGIN, BEGIN + SECOND, BEGIN + 2 * SECOND, BEGIN + 2 * SECOND + 2 * GAP, BEGIN + 3 * SECOND + 2 * GAP]
    series = Series(times, [100.0, 110.0, 5.0, 50.0, 51.0])
    assert [value for _, value in shown("x.Calls", series).points] == [10.0, 1.0]


def test_patterns_ignore_case_and_something_must_match() -> None:
    series = {"proc.x.RssMB": Series(), "trio.TasksLiving": Series()}
    assert list(matching(series, ["*rssmb"])) == ["proc.x.RssMB"]
    assert matching(series, []).keys() == series.keys()
    with pytest.raises(MachineError, match="no quantity matches"):
        matching(series, ["nothing"])


def test_files_follow_each_other(home: Path) -> None:
    both = joined(read_ftdc(path.read_bytes()) for path in find([], home))
    assert both["a.State"].values == [3.0, 0.0, 0.0, 1.0, 0.0]
    assert both["a.State"].times == sorted(both["a.State"].times)


def test_times_are_utc_with_milliseconds() -> None:
    assert clock(BEGIN) == "2026-01-02T12:00:00.000Z"
    assert clock(BEGIN + SECOND // 2) == "2026-01-02T12:00:00.500Z"


def test_list(home: Path) -> None:
    listed = ftdc("list", home=home)
    assert listed.exit_code == 0
    lines = [line.split() for line in listed.output.splitlines()[1:]]
    assert [line[:4] for line in lines] == [
        ["2026-01-02T11:00:00.000Z", "0", "1", "1"],
        ["2026-01-02T12:00:00.000Z", "3", "4", "3"],
    ]


def test_show(home: Path) -> None:
    rows = [line.split() for line in ftdc("show", home=home).output.splitlines()[1:]]
    assert rows == [
        ["a.State", "0", "0.25", "1", "0"],
        ["proc.x.RssMB", "40", "41.5", "43", "43", "MiB"],
        ["rpc.m.stop.Calls", "10", "10", "10", "10", "1/s"],
    ]


def test_plot_groups_by_unit_and_shows_flat_zeros_only_on_request(home: Path, tmp_path: Path) -> None:
    write(tmp_path / "f.ftdc", [{"proc.x.RssMB": 5.0, "proc.y.RssMB": 6.0, "rpc.m.stop.Errors": 0.0}] * 3)
    text = "".join(ElementTree.fromstring(ftdc("plot", tmp_path / "f.ftdc", home=home).output).itertext())
    assert "proc.y.RssMB" in text
    assert "Errors" not in text
    asked = ftdc("plot", tmp_path / "f.ftdc", "--match", "*errors", home=home).output
    assert "rpc.m.stop.Errors" in "".join(ElementTree.fromstring(asked).itertext())


def test_plot_breaks_the_line_where_the_machine_did_not_run(home: Path, tmp_path: Path) -> None:
    first = write(tmp_path / "1.ftdc", [{"proc.x.RssMB": 5.0}] * 3)
    two = write(tmp_path / "2.ftdc", [{"proc.x.RssMB": 7.0}] * 3, begin=BEGIN + 3600 * SECOND)
    picture = ElementTree.fromstring(ftdc("plot", first, two, home=home).output)
    drawn = [path.get("d") or "" for path in picture.iter("{http://www.w3.org/2000/svg}path")]
    assert max(line.count("M") for line in drawn) == 2


def test_export_has_every_sample_and_a_hole_where_nothing_was_known(home: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "f.ftdc", [{"a": 1.0}, {"a": 1.5, "b": math.inf}])
    rows = list(csv.reader(io.StringIO(ftdc("export", file, home=home).output)))
    assert rows == [
        ["time", "a", "b"],
        ["2026-01-02T12:00:00.000Z", "1", ""],
        ["2026-01-02T12:00:01.000Z", "1.5", "inf"],
    ]
    lines = [json.loads(line) for line in ftdc("export", file, "--format", "jsonl", home=home).output.splitlines()]
    assert lines[0] == {"time": "2026-01-02T12:00:00.000Z", "a": 1.0}
    assert lines[1]["b"] is None


def test_write_errors_are_reported(home: Path, tmp_path: Path) -> None:
    done = ftdc("export", "-o", tmp_path / "no" / "file", home=home)
    assert (done.exit_code, "cannot be written" in done.output) == (1, True)


def test_a_damaged_file_is_read_as_far_as_it_goes(home: Path) -> None:
    path = find([], home)[-1]
    path.write_bytes(path.read_bytes()[:-3])
    done = ftdc("show", home=home)
    assert (done.exit_code, "3 samples before that point are used" in done.output) == (0, True)
    assert "cut off" in ftdc("list", home=home).output
