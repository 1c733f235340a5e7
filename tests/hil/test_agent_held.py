"""Updates below systemd that a lease and a hook delay, and the order of the hooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.layout import PROGRAMS, SERVER
from tests.hil.agent.device import Device, joined
from tests.hil.agent.machine import agent_machine
from tests.hil.agent.releases import write
from tests.hil.rig.guest import Guest
from tests.hil.rig.vm import VirtualMachine
from tests.scope import RIG, on_demand

HOOKS = "/etc/machine-agent/hooks"
NAMES = ("before-update", "before-switch", "after-switch", "after-update")
HOOK = """#!/bin/sh
echo "$MACHINE_HOOK $MACHINE_PROGRAM $MACHINE_VERSION_FROM $MACHINE_VERSION_TO ${MACHINE_RESULT-}" >>/root/hooks
[ "$MACHINE_HOOK" != before-switch ] || [ ! -e /root/loaded ] || { echo "the gripper holds a load"; exit 3; }
"""


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


@on_demand(35, RIG)
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
