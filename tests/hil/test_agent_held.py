"""Updates below systemd that a lease and a hook delay, the order of the hooks, and the figures of an idle agent."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import trio

from agent.layout import AGENT, PROGRAMS, SERVER
from tests.hil.agent.device import Device, joined
from tests.hil.agent.machine import agent_machine
from tests.hil.agent.releases import write
from tests.hil.rig.guest import Guest
from tests.hil.rig.vm import VirtualMachine

HOOKS = "/etc/machine-agent/hooks"
NAMES = ("before-update", "before-switch", "after-switch", "after-update")
HOOK = """#!/bin/sh
echo "$MACHINE_HOOK $MACHINE_PROGRAM $MACHINE_VERSION_FROM $MACHINE_VERSION_TO ${MACHINE_RESULT-}" >>/root/hooks
[ "$MACHINE_HOOK" != before-switch ] || [ ! -e /root/loaded ] || { echo "the gripper holds a load"; exit 3; }
"""
IDLE = 100  # seconds


@pytest.fixture(scope="module")
def machine(_source: str) -> Iterator[VirtualMachine]:
    """Yield a machine with systemd, whose /opt/machine is free."""
    with agent_machine(_source) as machine:
        yield machine


def waits_for(text: str) -> Any:
    def condition(status: Mapping[str, Any]) -> bool:
        return any(text in waiting["reason"] for waiting in status["server"].get("waiting_for", ()))

    return condition


async def process_id(device: Device, program: str) -> int:
    return int((await device.state())[program]["pid"])


async def test_an_update_waits_for_a_lease_and_then_for_a_hook(guest: Guest, tmp_path: Path) -> None:
    first, second = [write(tmp_path, program, "1.0.0") for program in PROGRAMS], write(tmp_path, SERVER, "2.0.0")
    async with joined(guest, tmp_path) as device:
        await device.install(*first)
        await device.settled(SERVER, "1.0.0")
        await guest.run(f"install -d -m 755 {HOOKS} && touch /root/loaded /root/hooks")
        for name in NAMES:
            await guest.write(f"{HOOKS}/{name}", HOOK, 0o755)
        held = await device.ask("lease-take", name="arm", seconds=600, note="moves")
        assert held["name"] == "arm"
        before = await process_id(device, SERVER)
        [path] = await device.put(second)
        await device.update(SERVER, path)
        await device.until(waits_for("arm"))
        await device.ask("lease-release", name="arm")
        await device.until(waits_for("the hook before-switch ended with exit code 3: the gripper holds a load"))
        assert await process_id(device, SERVER) == before
        await guest.run("rm /root/loaded")
        await device.ask("update", program=SERVER, now=True)
        status = await device.settled(SERVER, "2.0.0")
        assert status["history"][-1]["result"] == "updated"
        lines = (await guest.run("cat /root/hooks")).stdout.splitlines()
        order = list(dict.fromkeys(lines))  # before-switch was asked several times
        assert order == [
            "before-update machine-server 1.0.0 2.0.0 ",
            "before-switch machine-server 1.0.0 2.0.0 ",
            "after-switch machine-server 1.0.0 2.0.0 ",
            "after-update machine-server 1.0.0 2.0.0 updated",
        ]


@pytest.mark.skipif(not os.environ.get("MACHINE_HIL_ALL"), reason="measures for 100 s: set MACHINE_HIL_ALL=yes")
async def test_idle_figures_below_systemd(guest: Guest, tmp_path: Path) -> None:
    async with joined(guest, tmp_path) as device:
        await device.install(*[write(tmp_path, program, "1.0.0") for program in PROGRAMS])
        await device.settled(SERVER, "1.0.0")
        await trio.sleep(30)
        for program in (AGENT, SERVER):
            pid = await process_id(device, program)
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
