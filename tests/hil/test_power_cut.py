"""Power cuts while the machine's configuration is rewritten: afterwards either the old or the new one exists.

The disk is a journaled ext4. Data that the guest had not written to it is lost with the process of QEMU, as it is with
the memory of a computer; losses of a disk's own cache are not tested here.
"""

from __future__ import annotations

import json
import random
import time

import pytest
import trio

from tests.hil.rig.guest import Guest
from tests.hil.rig.record import Recorder
from tests.hil.rig.server import network

CONFIG = "/var/lib/machine/machine.json"
SENSORS = 40

# Rewrites the configuration as fast as possible; every sensor's name contains the number of the rewrite.
WRITER = """
import json, os, sys
path, sensors, network, safely = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4] == "safely"
number = 0
while True:
    number += 1
    entries = [
        {"name": f"s{index}-of-{number}", "api": "rdk:component:sensor", "model": "fake", "attributes": {}}
        for index in range(sensors)
    ]
    with open(path + ".new", "w") as file:
        json.dump({"components": entries, "network": network}, file, indent=1)
        if safely:
            file.flush()
            os.fsync(file.fileno())
    os.replace(path + ".new", path)
    print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["safely", "carelessly"])
async def test_a_configuration_is_complete_after_a_power_cut(guest: Guest, record_recovery: Recorder, how: str) -> None:
    """Safely: write a new file, sync it to the disk, rename it. Carelessly: rename without a sync.

    Without a sync, the file may also be empty: ext4 usually writes the data before the rename, but promises nothing.
    """
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    await guest.run("mkdir -p /var/lib/machine; rm -f /var/lib/machine/*; sync")
    writer = await guest.start(["python3", "-c", WRITER, CONFIG, str(SENSORS), json.dumps(network()), how])
    await writer.wait_output("3\n")
    if how == "safely":  # a machine that follows the file at the same time
        await guest.start(f"exec machine-server -config {CONFIG} -log-file /tmp/server.log")
    await guest.run("sync")
    await trio.sleep(random.Random(seed).uniform(0.5, 4.0))  # at any point of a rewrite
    last = int(writer.stdout.split()[-1])
    await guest.power_cut()
    print(f"{how}: the power went after rewrite {last}")
    start = time.monotonic()
    await guest.boot()
    text = (await guest.read(CONFIG)).decode()
    if how == "carelessly" and not text:
        print("the file is empty")
        return
    numbers = {entry["name"].rpartition("-")[2] for entry in json.loads(text)["components"]}
    print(f"rewrite {numbers} is on the disk")
    assert len(numbers) == 1
    assert int(numbers.pop()) >= 3
    async with guest.server(None, config=CONFIG) as server, server.client() as client:
        status = await client.call("viam.robot.v1.RobotService", "", "get_machine_status")
        assert sum("-of-" in str(entry["name"]) for entry in status["resources"]) == SENSORS
        taken = time.monotonic() - start
    record_recovery(
        f"power cut while the configuration is rewritten {how}",
        taken,
        seen="the machine starts with the configuration before or after the rewrite (the time is that of a boot)",
    )
