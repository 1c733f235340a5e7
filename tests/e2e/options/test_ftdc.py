"""-ftdc on the real process: the stored samples, where, after which kind of exit; and the output of `machine ftdc`."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import stat
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from telemetry.metrics.ftdc import read_ftdc
from tests.e2e.harness import Server
from tests.e2e.modules.support import program
from tests.e2e.options.support import inside, motor, until, until_logged

FOLDER = Path("home/diagnostics.data/local-config")


def files(folder: Path) -> list[Path]:
    return sorted((folder / FOLDER).glob("machine-server-*Z.ftdc"))


def samples(folder: Path) -> int:
    return sum(read_ftdc(path.read_bytes()).samples for path in files(folder))


def ftdc(*arguments: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("machine")
    return subprocess.run(
        [program, "ftdc", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "MACHINE_HOME": str(home)},
    )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a machine that recorded some calls and was killed."""
    folder = tmp_path_factory.mktemp("recorded")
    with Server({"components": [motor("m")]}, folder) as server:
        server.wait_running()
        for _ in range(2):
            assert server.command("call", "m", "set_power", "power_pct=0.5").returncode == 0
        assert server.command("call", "m", "go_for", "rpm=nonsense", "revolutions=1").returncode != 0
        before = samples(folder)
        until(lambda: samples(folder) >= before + 2, "no samples")
        server.stop(signal.SIGKILL)
    return folder


def test_recorded_metrics_survive_a_kill(recorded: Path) -> None:
    (file,) = files(recorded)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    recording = read_ftdc(file.read_bytes())
    assert recording.problem == ""
    series = recording.series
    assert series["rpc.rdk:component:motor/m.set_power.Calls"].values[-1] == 2
    assert series["rpc.rdk:component:motor/m.set_power.Errors"].values[-1] == 0
    assert series["rpc.rdk:component:motor/m.set_power.ReceivedBytes"].values[-1] > 0
    assert series["rdk:component:motor/m.State"].values[-1] == 0
    assert series["proc.machine-server.RssMB"].values[-1] > 10
    assert series["proc.machine-server.UserCPUSecs"].values[-1] > 0
    assert series["net.lo.RxBytes"].values[-1] > 0
    assert recording.last > recording.first


def test_list_show_plot_and_export(recorded: Path, tmp_path: Path) -> None:
    home = recorded / "home"
    listed = ftdc("list", home=home)
    assert listed.returncode == 0, listed.stderr
    assert files(recorded)[0].name in listed.stdout

    shown = ftdc("show", "--match", "*set_power.calls", "--match", "*.rssmb", home=home)
    names = [line.split()[0] for line in shown.stdout.splitlines()[1:]]
    assert names == ["proc.machine-server.RssMB", "rpc.rdk:component:motor/m.set_power.Calls"]

    picture = tmp_path / "all.svg"
    assert ftdc("plot", "-o", picture, home=home).returncode == 0
    text = "".join(ElementTree.fromstring(picture.read_text()).itertext())
    assert "proc.machine-server.RssMB" in text
    assert "MiB" in text

    rows = list(csv.DictReader(io.StringIO(ftdc("export", files(recorded)[0], home=home).stdout)))
    lines = ftdc("export", "--format", "jsonl", home=home).stdout.splitlines()
    assert len(rows) == len(lines) == samples(recorded)
    assert float(rows[-1]["rpc.rdk:component:motor/m.set_power.Calls"]) == 2
    assert json.loads(lines[-1])["rpc.rdk:component:motor/m.set_power.Calls"] == 2
    assert rows[0]["time"] < rows[-1]["time"]


def test_a_truncated_file_is_read_up_to_its_end(recorded: Path, tmp_path: Path) -> None:
    data = files(recorded)[0].read_bytes()
    cut = tmp_path / "cut.ftdc"
    cut.write_bytes(data[:-5] + bytes(100))
    shown = ftdc("show", cut, home=tmp_path)
    assert shown.returncode == 0
    assert "samples before that point are used" in shown.stderr
    assert "proc.machine-server.RssMB" in shown.stdout


def test_missing_files_are_reported(tmp_path: Path) -> None:
    none = ftdc("list", home=tmp_path)
    assert (none.returncode, "contains no diagnostic data" in none.stderr) == (1, True)
    none = ftdc("show", tmp_path / "no.ftdc", home=tmp_path)
    assert (none.returncode, "does not exist" in none.stderr) == (1, True)


def test_a_folder_that_cannot_be_created_is_logged_once_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where a folder should be")
    with Server({"components": [motor("m")]}, tmp_path) as server:
        server.wait_running()
        until_logged(server, "diagnostic data is not recorded")
        assert server.command("call", "m", "is_moving").returncode == 0
        assert server.command("status").returncode == 0
        assert server.log().count("diagnostic data is not recorded") == 1
        assert server.stop() == 0


def test_processes_of_modules_are_recorded(tmp_path: Path) -> None:
    document = {"modules": [{"name": "demo", "executable_path": program(tmp_path)}]}
    with Server(document, tmp_path) as server:
        until_logged(server, "module is ready")
        before = samples(tmp_path)
        until(lambda: samples(tmp_path) > before + 1, "no samples")
    series = read_ftdc(files(tmp_path)[0].read_bytes()).series
    assert series["proc.modules.demo.RssMB"].values[-1] > 10
    assert series["proc.modules.demo.UserCPUSecs"].values[-1] > 0


def test_a_full_disk_is_logged_once_and_leaves_complete_files(tmp_path: Path) -> None:
    result = inside("disk", tmp_path)
    assert (result["call"], result["exit"], result["said"], result["reason"]) == (0, 0, 1, True)
    assert result["whole"] == [""]
