"""The memory and processor time of an idle agent below systemd."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from agent.layout import AGENT, PROGRAMS, SERVER
from tests.hil.agent.device import joined
from tests.hil.agent.machine import agent_machine
from tests.hil.agent.releases import write
from tests.hil.rig.guest import Guest
from tests.hil.rig.vm import VirtualMachine
from tests.scope import RIG, on_demand

IDLE = 100  # seconds


@pytest.fixture(scope="module")
def machine(_source: str) -> Iterator[VirtualMachine]:
    """Yield a machine with systemd, whose /opt/machine is free."""
    with agent_machine(_source) as machine:
        yield machine


@on_demand(100, RIG)
async def test_idle_figures_below_systemd(guest: Guest, tmp_path: Path) -> None:
    async with joined(guest, tmp_path) as device:
        await device.install(*[write(tmp_path, program, "1.0.0") for program in PROGRAMS])
        await device.settled(SERVER, "1.0.0")
        await trio.sleep(30)
        for program in (AGENT, SERVER):
            pid = (await device.state())[program]["pid"]
            text = (await guest.run(f"grep -E 'VmRSS|RssAnon|RssFile' /proc/{pid}/status")).stdout
            print(program, text.split())
        unit = f"/sys/fs/cgroup/system.slice/{AGENT}.service/cpu.stat"
        used = [await usage(guest, unit)]
        await trio.sleep(IDLE)
        used.append(await usage(guest, unit))
        print(json.dumps({"agent, % of a core": (used[1] - used[0]) / IDLE / 1e4}))


async def usage(guest: Guest, file: str) -> int:
    """Return the processor time of a control group in microseconds."""
    return int((await guest.run(f"cat {file}")).stdout.split()[1])
