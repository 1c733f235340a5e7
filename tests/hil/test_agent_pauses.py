"""A machine-server that always exits, with the systemd of the guest: the pauses become longer, and short again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import trio

from agent.layout import AGENT, SERVER
from agent.supervise.units import RESTART_PAUSE
from tests.hil.agent.device import Device, joined
from tests.hil.agent.machine import agent_machine
from tests.hil.agent.releases import write
from tests.hil.rig.guest import Guest
from tests.hil.rig.vm import VirtualMachine
from tests.scope import RIG, on_demand

STARTS = "/root/starts"
EXITS = f"echo begins >&2; cut -d ' ' -f 1 /proc/uptime >> {STARTS}\nexit 3\n"
LATE = 1.9
"""Part of a pause within which the next start must come: the next pause is twice as long."""


@pytest.fixture(scope="module")
def machine(_source: str) -> Iterator[VirtualMachine]:
    """Yield a machine with systemd, whose /opt/machine is free."""
    with agent_machine(_source) as machine:
        yield machine


async def starts(device: Device, count: int, limit: float) -> list[float]:
    """Return the times of the starts, once there are so many."""
    seen: list[float] = []
    with trio.move_on_after(limit):
        while len(seen) < count:
            seen = [float(line) for line in (await device.guest.run(f"cat {STARTS} || true")).stdout.split()]
            await trio.sleep(0.3)  # another computer, in effect: nothing reports changes
    assert len(seen) >= count, f"only {seen} within {limit:g} s\n{await device.journal()}"
    return seen[:count]


@on_demand(75, RIG)
async def test_the_pauses_of_a_server_that_always_exits(guest: Guest, tmp_path: Path) -> None:
    releases = write(tmp_path, AGENT, "1.0.0"), write(tmp_path, SERVER, "1.0.0", EXITS)
    async with joined(guest, tmp_path) as device:
        await guest.run(f"rm -r /etc/systemd/system/{SERVER}.service.d")  # its pauses are of this test
        print((await guest.run("systemctl --version | head -n 1")).stdout.strip())
        await device.install(*releases)
        await device.until(lambda status: status["server"].get("exits"))
        await guest.run(f"rm -f {STARTS}")
        await device.ask("restart")
        await check(device, 5, 10, 20)
        await guest.run(f"rm -f {STARTS}")
        await device.ask("restart")
        await check(device, 5, 10)
        await check_journal(guest)
        await guest.run("machine-agent --uninstall")
        assert (await guest.run(f"ls -d {RESTART_PAUSE.parent} || echo gone")).stdout.strip() == "gone"


async def check_journal(guest: Guest) -> None:
    """Both programs write by their own names, which the forwarding leaves out; `machine agent logs` selects by unit."""
    units = " + ".join(f"_TRANSPORT=stdout _SYSTEMD_UNIT={program}.service" for program in (AGENT, SERVER))
    entries = "journalctl -b -o json --output-fields=SYSLOG_IDENTIFIER,_SYSTEMD_UNIT"
    seen = {
        (entry["_SYSTEMD_UNIT"], entry["SYSLOG_IDENTIFIER"])
        for line in (await guest.run(f"{entries} {units}")).stdout.splitlines()
        for entry in (json.loads(line),)
        if "_SYSTEMD_UNIT" in entry
    }
    assert seen == {(f"{program}.service", program) for program in (AGENT, SERVER)}
    shown = (await guest.run(f"journalctl -b -u {SERVER} --no-pager")).stdout
    assert re.search(rf"{SERVER}\[\d+\]: begins", shown)


async def check(device: Device, *pauses: float) -> None:
    seen = await starts(device, len(pauses) + 1, sum(pauses) * LATE + 30)
    measured = [later - former for former, later in pairwise(seen)]
    print(f"pauses: {[round(pause, 1) for pause in measured]}")
    for expected, pause in zip(pauses, measured, strict=True):
        assert expected <= pause < expected * LATE, measured
