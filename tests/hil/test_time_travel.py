"""Days of a real kernel in seconds: scenarios that run entirely in a guest, under time travel."""

from __future__ import annotations

import json
import os
import re
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.hil.guest.scenario import run
from tests.hil.rig.travel import START, TimeTravel

DAY = 86_400
MORNING = START + timedelta(hours=9, minutes=30)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "operate-a-machine.md"
UNIT = Path("/etc/systemd/system/machine-server.service")
CONFIG = Path("/etc/machine.json")
LOG = Path("/var/log/machine.log")
OPTIONS = f"-log-file {LOG} -ftdc=false"  # samples of diagnostic data each second would take most of a minute per day
HOURLY = {
    "name": "hourly",
    "schedule": "0 * * * *",
    "resource": "air",
    "method": "GetReadings",
    "log_configuration": {"level": "debug"},
}
DOCUMENT = {"components": [{"name": "air", "api": "rdk:component:sensor", "model": "fake"}], "jobs": [HOURLY]}
RAN = re.compile(r"^(\S+)\tDEBUG\trdk\.job_manager\.hourly\t\S+\ta run succeeded\t", re.MULTILINE)
STAMP = "%Y-%m-%dT%H:%M:%S.%fZ"


async def sleep_a_day() -> dict[str, float]:
    """Sleep, and measure with both clocks of the guest."""
    wall, monotonic = time.time(), time.monotonic()
    await trio.sleep(DAY)
    return {"began": wall, "wall": time.time() - wall, "monotonic": time.monotonic() - monotonic}


async def test_a_day_without_activity(time_travel: TimeTravel) -> None:
    slept = await time_travel(sleep_a_day, days=1.1)
    assert 0 < slept["began"] - START.timestamp() < 60
    assert DAY <= slept["monotonic"] < DAY + 1
    assert DAY <= slept["wall"] < DAY + 1


def install() -> None:
    """Write DOCUMENT, and the unit of docs/howto/operate-a-machine.md with the guest's machine-server and OPTIONS."""
    unit = PAGE.read_text().partition("```ini\n")[2].partition("```")[0]
    printed = re.search(r"^ExecStart=\S+ (.*)$", unit, re.MULTILINE)
    assert printed is not None
    UNIT.write_text(unit.replace(printed[0], f"ExecStart=/usr/local/bin/machine-server {printed[1]} {OPTIONS}"))
    CONFIG.write_text(json.dumps(DOCUMENT))


def read_logs() -> dict[str, str]:
    """Return the log file and its older parts, by name."""
    return {path.name: path.read_text() for path in LOG.parent.glob(f"{LOG.name}*")}


async def serve_a_day() -> dict[str, Any]:
    """Run machine-server under systemd; return its log files by name, and the report of systemd after a day."""
    install()
    await run("systemctl daemon-reload && systemctl start machine-server")
    await trio.sleep(DAY)
    unit = await run("systemctl show machine-server --property=ActiveState,NRestarts")
    await run("systemctl stop machine-server")
    stopped = await run("systemctl show machine-server --property=ActiveState,Result")
    return {"after a day": sorted(unit.split()), "stopped": sorted(stopped.split()), "logs": read_logs()}


async def test_a_day_of_machine_server_under_systemd(time_travel: TimeTravel) -> None:
    seen = await time_travel(serve_a_day, days=1.1, systemd=True, start=MORNING)
    assert seen["after a day"] == ["ActiveState=active", "NRestarts=0"]
    assert seen["stopped"] == ["ActiveState=inactive", "Result=success"]
    assert len(seen["logs"]) == 2, "the file of each day"
    newest, older = sorted(seen["logs"], key=len)
    assert newest == LOG.name
    assert older.startswith(f"{LOG.name}.2030-01-02T00-00-00."), "the first message of the day is that of the job"
    runs = {name: [datetime.strptime(text, STAMP) for text in RAN.findall(log)] for name, log in seen["logs"].items()}
    first = START.replace(tzinfo=None) + timedelta(hours=10)
    hours = [first + timedelta(hours=number) for number in range(24)]
    assert [ran.replace(microsecond=0) for ran in runs[older] + runs[newest]] == hours
    assert len(runs[older]) == 14


async def write_files(*names: str) -> None:
    for name in names:
        await run(f"touch /root/{name}; case {name} in flushed) sync /root/{name};; esac")


async def list_files() -> list[str]:
    return (await run("ls /root")).split()


async def test_the_disk_persists_between_scenarios(time_travel: TimeTravel) -> None:
    await time_travel(write_files, "written", days=0.1)
    await time_travel(write_files, "flushed", "lost", days=0.1, start=START + timedelta(days=9), power_cut=True)
    assert await time_travel(list_files, days=0.1, start=START + timedelta(days=99)) == ["flushed", "written"]


async def fail() -> None:
    print("about to fail")
    await run("echo said by a command; logger said to the journal; exit 3")


async def test_a_failure_in_the_guest_shows_traceback_console_and_journal(time_travel: TimeTravel) -> None:
    with pytest.raises(AssertionError, match=r"(?s)fail failed in the guest.*in fail\n.*exit 3.*said by a command"):
        await time_travel(fail, days=0.1, systemd=True)
    log = time_travel.vm.log()
    assert "about to fail" in log
    assert "said to the journal" in log


async def wait_for_ever() -> None:
    await trio.sleep_forever()


async def test_a_scenario_has_a_limit_in_guest_time(time_travel: TimeTravel) -> None:
    with pytest.raises(AssertionError, match=r"(?s)wait_for_ever failed.*TooSlowError"):
        await time_travel(wait_for_ever, days=2)


async def be_killed() -> None:
    print("about to be killed", flush=True)
    await run(f"kill -9 {os.getpid()}")


async def test_a_guest_that_ends_without_a_result_shows_its_console(time_travel: TimeTravel) -> None:
    with pytest.raises(AssertionError, match=r"(?s)ended without a result.*about to be killed"):
        await time_travel(be_killed, days=0.1)
