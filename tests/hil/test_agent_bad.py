"""Bad releases in a guest with systemd: the former release runs again, and the reason is reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agent.layout import AGENT, PROGRAMS, SERVER
from tests.e2e.cloud.test_command import Terminal
from tests.hil.agent.device import Device, joined
from tests.hil.agent.machine import agent_machine
from tests.hil.agent.releases import real, write
from tests.hil.rig.guest import Guest
from tests.hil.rig.vm import VirtualMachine
from tests.scope import RIG, on_demand, selected

WATCHDOG = 10  # seconds, for the unit of the agent
GARBAGE = "/opt/machine/home/garbage"

BLOCKED = """\
exec /usr/bin/python3 -c '
import signal, sys, time
signal.signal(signal.SIGALRM, lambda *_: time.sleep(1000))
signal.alarm(4)
sys.argv[0] = "machine-agent"
from agent.start import main
main()
' "$@"
"""
"""An agent whose event loop stops after four seconds."""

HOG = """\
exec /usr/bin/python3 -c '
kept = []
while True:
    kept.append(b"x" * (1 << 20))
'
"""


EVERYWHERE = "tests/unit/agent/actions/test_driver.py, tests/sim/agent"
PROCESSES = "tests/e2e/agent/test_update.py"


class Case(NamedTuple):
    """A bad release, and how it ends."""

    program: str
    script: str
    reason: str  # part of it
    also: str = ""  # other tests of it; then it is tested here only if MACHINE_HIL_ALL is set, because it takes 40 s


STARTED = "it was not confirmed: it was started 3 times, or ran too long"
CASES = {
    "server crashes at once": Case(SERVER, "kill -9 $$\n", ""),
    "server crashes after five minutes": Case(SERVER, f"(sleep 5; kill -9 $$) &\n{real(SERVER)}", "", PROCESSES),
    "server exits with status 0": Case(SERVER, "exit 0\n", "", PROCESSES),
    "server needs all memory": Case(SERVER, HOG, ""),  # by the kernel
    "server hangs before it serves": Case(SERVER, "exec sleep 1000\n", "it does not answer requests", PROCESSES),
    "server fills the disk": Case(
        SERVER, f"dd if=/dev/zero of={GARBAGE} bs=64k 2>/dev/null\n{real(SERVER)}", "the disk became full", PROCESSES
    ),
    "agent crashes at once": Case(AGENT, "kill -9 $$\n", STARTED, EVERYWHERE),
    "agent crashes after five minutes": Case(AGENT, f"(sleep 5; kill -9 $$) &\n{real(AGENT)}", STARTED, EVERYWHERE),
    "agent hangs before it serves": Case(AGENT, "exec sleep 1000\n", STARTED, EVERYWHERE),
    "agent starves its watchdog": Case(AGENT, BLOCKED, STARTED),
    "agent cannot read its credentials": Case(
        AGENT, f"set -- --config /etc/hostname\n{real(AGENT)}", STARTED, EVERYWHERE
    ),
}


@pytest.fixture(scope="module")
def machine(_source: str) -> Iterator[VirtualMachine]:
    """Yield a machine with systemd, whose /opt/machine is free."""
    with agent_machine(_source) as machine:
        yield machine


@pytest.mark.parametrize("program", [AGENT, pytest.param(SERVER, marks=on_demand(60, RIG))])
async def test_bad_releases_end_and_the_former_one_runs(guest: Guest, tmp_path: Path, program: str) -> None:
    async with joined(guest, tmp_path) as device:
        override = f"[Service]\nWatchdogSec={WATCHDOG}\nTimeoutStartSec={WATCHDOG}\n"
        await guest.write("/etc/systemd/system/machine-agent.service.d/shorter.conf", override)
        await device.install(*(write(tmp_path, name, "1.0.0") for name in PROGRAMS))
        for name in PROGRAMS:
            await device.settled(name, "1.0.0")
        cases = [name for name, case in CASES.items() if case.program == program]
        for number, name in enumerate(cases, start=2):
            if CASES[name].also and not selected(RIG):
                print(f"{name}: left to {CASES[name].also}; {RIG}=yes tests it here, too")
                continue
            await ends(device, tmp_path, name, f"{number}.0.0")


async def ends(device: Device, folder: Path, name: str, version: str) -> None:
    program, script, reason, _ = CASES[name]
    key, other = ("agent", SERVER) if program == AGENT else ("server", AGENT)
    before = await device.state()
    [file] = await device.put(write(folder, program, version, script))
    await device.update(program, file)
    await device.until(lambda status: version in [entry["version"] for entry in status[key].get("quarantine", ())])
    settled = await device.settled(program, "1.0.0")
    after = await device.state()
    outcome = settled["history"][-1]
    print(f"{name}: {outcome['result']}, {outcome['reason']}")
    assert (outcome["version_to"], outcome["result"]) == (version, "rolled_back"), name
    assert reason in outcome["reason"], name
    assert not after["wrong"], name
    assert after[program]["version"] == "1.0.0", name
    assert after[other]["pid"] == before[other]["pid"], f"{name}: {other} was disturbed"
    await device.guest.run(["rm", "-f", GARBAGE, file])


async def test_releases_are_refused_when_the_metadata_has_expired(guest: Guest, tmp_path: Path) -> None:
    """The clock of the guest is set two days ahead: the metadata of the cloud is valid for one day."""
    first = [write(tmp_path, program, "1.0.0") for program in PROGRAMS]
    async with joined(guest, tmp_path) as device:
        terminal, keys = Terminal(device.cloud, tmp_path / "home"), ("--keys", str(tmp_path / "keys"))
        key_id, key = device.cloud.key
        await terminal("login", f"http://{device.cloud.address}", "--key-id", key_id, MACHINE_CLOUD_KEY=key)
        await terminal("releases", "init", *keys)
        await terminal("releases", "upload", *(str(release.path) for release in first), *keys)
        await device.install(*first, root=(tmp_path / "keys" / "root.json").read_bytes())
        await device.settled(SERVER, "1.0.0")
        await device.ask("update", program=SERVER, choice="")  # another test may have chosen a file
        now = float((await guest.run("date +%s")).stdout)
        await guest.run(f"systemctl stop machine-agent; date -s @{now + 2 * 86400:.0f}; systemctl start machine-agent")
        await device.until(lambda status: status["server"].get("serving"))
        second = write(tmp_path, SERVER, "2.0.0")
        await terminal("releases", "upload", str(second.path), "--channel", "stable", *keys)
        await device.ask("update")

        def refused(status: Mapping[str, Any]) -> bool:
            return any("timestamp.json has expired" in problem["message"] for problem in status.get("problems", ()))

        status = await device.until(refused)
        assert status["server"]["version"] == "1.0.0"
        assert (await device.state())["downloads"] == []
        await guest.run(f"date -s @{now:.0f}; systemctl restart machine-agent")
        await device.settled(SERVER, "2.0.0")
