"""Power cuts while log messages are queued and a configuration is cached: synced data survives."""

from __future__ import annotations

import json
import random
import time

import pytest
import trio

from tests.e2e.logs.victim import judge
from tests.hil.image.contents import SOURCE
from tests.hil.rig.guest import Guest

FOLDER = "/var/lib/machine/logs"
CUTS = 2


@pytest.mark.slow
async def test_synced_data_survive_power_cuts(guest: Guest) -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    await guest.run(f"rm -rf {FOLDER}; mkdir -p {FOLDER}; sync")
    found = None
    for _ in range(CUTS):
        victim = await guest.start(["python3", "-m", "tests.e2e.logs.victim", FOLDER], cwd=SOURCE)
        await victim.wait_output("durable")
        await victim.wait_output("cached")
        await trio.sleep(chance.uniform(0.5, 5.0))  # at any point of its work
        await guest.power_cut()
        said = victim.stdout
        await guest.boot()
        checked = await guest.run(["python3", "-m", "tests.e2e.logs.victim", FOLDER, "check"], cwd=SOURCE)
        before, found = found, json.loads(checked.stdout)
        print(found, said[-200:])
        judge(found, said, before, power=True)
