"""The example thermostat on real kernel drivers: the same tests, one option changed."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.rig.project import environment
from tests.hil.image.places import ROOT
from tests.hil.rig.record import Recorder

HEATER = "pinctrl-bcm2711 line 17"
FAULTS = {
    "test_a_silent_sensor_ends_the_heating": "Thermostat: sensor did not acknowledge",
    "test_an_unplugged_sensor_ends_the_heating_until_it_is_back": "Thermostat: adapter unplugged and back",
    "test_the_heater_is_off_without_power_and_the_box_is_warm_again_later": "Thermostat: machine-server killed -9",
}


@pytest.mark.slow
@pytest.mark.usefixtures("_source")
def test_the_thermostat_in_the_guest(tmp_path: Path, record_recovery: Recorder) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "examples/thermostat", "--rig", "qemu", "-p", "no:cacheprovider"),
            *("-k", " or ".join(FAULTS), "--rig-artefacts", str(tmp_path)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=270,
        env=environment(),
    )
    assert f"{len(FAULTS)} passed" in done.stdout, done.stdout
    for test, what in FAULTS.items():
        folder = tmp_path / f"test_thermostat.py-{test}"
        rows = list(csv.DictReader((folder / "readings.csv").read_text().splitlines()))
        levels = [row["value"] for row in rows if row["channel"] == HEATER]
        assert "1" in levels
        assert levels[-1] == "0"
        [seconds] = [float(row["value"]) for row in rows if row["channel"] == "recovery_s"]
        record_recovery(what, seconds, seen="the heater is off")
        assert "listening on" in (folder / "log.txt").read_text()
    journal = (tmp_path / "journal.txt").read_text().splitlines()
    assert [line for line in journal if line.startswith("-- ")] == ["-- safe"] * len(FAULTS)
