"""Rigs on real kernel drivers: the example thermostat with one option, and outputs that are safe after each test."""

from __future__ import annotations

import csv
import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.rig.project import HEAD, RELAY, environment
from tests.hil.image.places import ROOT
from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Plant
from tests.hil.rig.record import Recorder
from tests.scope import RIG, on_demand

HEATER = "pinctrl-bcm2711 line 17"
FAULTS = {
    "test_a_silent_sensor_ends_the_heating": "Thermostat: sensor did not acknowledge",
    "test_a_stuck_bus_ends_the_heating": "Thermostat: bus of the sensor stuck",
    "test_an_unplugged_sensor_ends_the_heating_until_it_is_back": "Thermostat: adapter unplugged and back",
    "test_the_heater_is_off_without_power": "Thermostat: machine-server killed, started again",
}


@on_demand(60, RIG)
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
        timeout=900,
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


ENDS = {
    "asserts": "assert False",
    "raises": "raise RuntimeError",
    "takes_too_long": "await trio.sleep_forever()",
    "passes": "pass",
    "is_interrupted": "os.kill(os.getpid(), signal.SIGINT); await trio.sleep_forever()",
    "comes_too_late": "pass",
}


async def test_the_kernel_sees_safe_outputs_between_tests(guest: Guest, plant: Plant) -> None:
    bank = await plant.gpio(58, label="pinctrl-bcm2711")
    text = HEAD
    for name, end in ENDS.items():
        text += (
            f"\n@pytest.mark.machine(timeout=5)\nasync def test_{name}(rig):\n"
            f"    heater = rig.get(Switch, 'heater')\n    assert await heater.get_position() == 0\n"
            f"    await heater.set_position(1)\n    {end}\n"
        )
    await guest.run("install -d /tmp/project")
    await guest.write("/tmp/project/machine.json", json.dumps(RELAY))
    await guest.write("/tmp/project/test_it.py", text)
    await guest.write("/tmp/project/pytest.ini", "[pytest]\nfilterwarnings = error\n")
    command = "python3 -m pytest -p rig.plugin -p no:cacheprovider -p no:anyio --rig linux"
    done = await guest.run(command, cwd="/tmp/project", check=False, fresh=True)
    assert done.returncode == 2, done.output
    assert "3 failed, 1 passed" in done.output, done.output
    assert "KeyboardInterrupt" in done.output
    events = [event for event in await bank.history(17) if event["what"] != "reconfigured"]
    told = [event["high"] if event["what"] == "set" else event["what"] for event in events]
    seen = [event for event, _ in itertools.groupby(told)]
    assert [event for event in seen if event is not False] == ["requested", True, "released"] * 5
    for before, after in itertools.pairwise(seen):
        if after == "released":
            assert before is False
