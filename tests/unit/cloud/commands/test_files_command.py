"""`machine-cloud files readings` lists the Parquet files for other programs, which find the same readings in them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from cloud.blobs.s3_location import parse_location
from cloud.commands.files_command import _described
from cloud.server.cli import command

DOCS = Path(__file__).parents[4] / "docs" / "howto" / "run-a-cloud.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data folder of a cloud with two machines and two sensors of each."""
    pytest.importorskip("pyarrow", reason="segments need the extra `data`")
    place = tmp_path_factory.mktemp("plan")
    done = CliRunner().invoke(
        command, ["--data", str(place), "simulate", "--machines", "2", "--days", "30", "--every", "600"]
    )
    assert done.exit_code == 0, done.output
    return place


def listed(folder: Path, *words: str) -> list[dict[str, object]]:
    done = CliRunner().invoke(command, ["--data", str(folder), "files", "readings", *words])
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.output.splitlines()]


def test_each_file_is_described(folder: Path) -> None:
    from pyarrow import parquet

    every = listed(folder)
    assert {(each["machine"], each["component"]) for each in every} == {
        (machine, component) for machine in ("sim-0001", "sim-0002") for component in ("climate", "power")
    }
    for each in every:
        table = parquet.read_table(each["file"])
        assert table.num_rows == each["readings"]
        assert Path(str(each["file"])).stat().st_size == each["bytes"]
        assert set(table["source"].to_pylist()) == {each["source"]}
        assert str(each["first"]) < str(each["last"])
        assert "readings.temperature" in table.column_names or each["component"] == "power"


def test_files_are_chosen(folder: Path) -> None:
    every = listed(folder)
    assert listed(folder, "--component", "power") == [each for each in every if each["component"] == "power"]
    assert listed(folder, "--organization", str(every[0]["organization"])) == every
    assert listed(folder, "--organization", "other") == []


def test_files_of_a_bucket_have_its_address() -> None:
    row = {"blob": "ab12", "first": 0, "last": 1_000_000}
    described = _described(parse_location("s3://my-bucket/cloud", environ={}), row)
    assert described["file"] == "s3://my-bucket/cloud/ab/ab12"
    assert described["last"] == "1970-01-01T00:00:01+00:00"


def test_a_folder_without_a_cloud_stays_empty(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["--data", str(tmp_path), "files", "readings"])
    assert done.exit_code == 1
    assert "there is no database" in done.output
    assert "--data" in done.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("library", ["duckdb", "dask"])
def test_the_programs_of_the_documentation_read_them(folder: Path, library: str, tmp_path: Path) -> None:
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    programs = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.S)
    (program,) = [text for text in programs if f"import {library}" in text]
    names = tmp_path / "climate.jsonl"
    names.write_text("".join(json.dumps(each) + "\n" for each in listed(folder, "--component", "climate")))
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
    )
    assert len(re.findall(r"\b\d\d\.\d", done.stdout)) >= 2, done.stdout  # an average for each machine
