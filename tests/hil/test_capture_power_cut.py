"""Power cuts while data is captured: what the data manager reported as synced exists completely and only once.

The disk is a journaled ext4. Data that the guest had not written to it is lost with the process of QEMU, as it is with
the memory of a computer.
"""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest
import trio

from tests.hil.rig.guest import Guest
from tests.hil.rig.record import Recorder
from tests.hil.rig.server import network

FOLDER = "/var/lib/machine/capture"
CONFIG = "/var/lib/machine/capture.json"
MANAGER = "rdk:service:data_manager"


def capturing(method: str, frequency: float) -> list[dict[str, Any]]:
    methods = [{"method": method, "capture_frequency_hz": frequency}]
    return [{"type": "data_manager", "attributes": {"capture_methods": methods}}]


DOCUMENT = {
    "network": network(),
    "components": [
        {
            "name": "s",
            "api": "rdk:component:sensor",
            "model": "fake",
            "service_configs": capturing("Readings", 40),
        },
        {  # so slow that its file stays open during many commits
            "name": "slow",
            "api": "rdk:component:sensor",
            "model": "fake",
            "service_configs": capturing("Readings", 2),
        },
        {
            "name": "eye",
            "api": "rdk:component:camera",
            "model": "fake",
            "service_configs": capturing("GetImages", 1),
        },
    ],
    "services": [
        {
            "name": "data",
            "api": MANAGER,
            "attributes": {"capture_dir": FOLDER, "maximum_capture_file_size_bytes": 4000},
        }
    ],
}

ENOUGH = {
    "rdk:component:sensor/s Readings": 60,
    "rdk:component:sensor/slow Readings": 8,
    "rdk:component:camera/eye GetImages": 2,
}
"""Numbers of synced readings before the power is cut."""

SUMS = f"cd {FOLDER} && find . -name '*.capture' | sort | xargs -r sha256sum"


async def sums(guest: Guest) -> dict[str, str]:
    """Return the digests of all closed files by name."""
    lines = (await guest.run(SUMS)).stdout.splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


@pytest.mark.slow
async def test_committed_transactions_survive_a_power_cut(guest: Guest, record_recovery: Recorder) -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    await guest.run(f"rm -rf {FOLDER}; mkdir -p /var/lib/machine; sync")
    committed: dict[str, int] = {}
    async with guest.server(DOCUMENT, config=CONFIG) as server, server.client() as client:
        with trio.fail_after(60):
            while any(committed.get(key, 0) < count for key, count in ENOUGH.items()):
                methods = (await client.call(MANAGER, "data", "get_status"))["methods"]
                committed = {key: int(state["committed"]) for key, state in methods.items()}
                await trio.sleep(0.2)
        closed = await sums(guest)
        await trio.sleep(random.Random(seed).uniform(0.0, 3.0))  # anywhere between two commits
        methods = (await client.call(MANAGER, "data", "get_status"))["methods"]
        committed = {key: int(state["committed"]) for key, state in methods.items()}
        written = {key: int(state["written"]) for key, state in methods.items()}
        await guest.power_cut()
    print(f"written {written}, committed {committed}, {len(closed)} closed files")
    start = time.monotonic()
    await guest.boot()
    found = json.loads((await guest.run(f"machine data ls {FOLDER} --json", check=False)).stdout)["files"]
    left = {one["path"]: one for one in found if one["state"] != "closed"}
    assert not [one for one in found if one["state"] == "damaged"], "cut off, at most"
    print(f"left behind: {[(one['state'], one['readings']) for one in left.values()]}")
    after = await sums(guest)
    assert closed.items() <= after.items(), "a closed file is as it was"
    assert not [one for one in found if one["path"].endswith(".capture") and one["state"] != "closed"]
    async with guest.server(DOCUMENT, config=CONFIG) as server, server.client() as client:
        taken = time.monotonic() - start
        recovered = (await client.call(MANAGER, "data", "get_status"))["recovered"]
        print(f"recovered {recovered}")
    export = await guest.run(f"machine data export {FOLDER} --format jsonl --media /tmp/media")
    rows = [json.loads(line) for line in export.stdout.splitlines()]
    times: dict[str, list[str]] = {}
    for row in rows:
        key = f"{row['component_type']}/{row['component_name']} {row['method_name']}"
        times.setdefault(key, []).append(row["time_requested"])
    for key, count in committed.items():
        assert len(times[key]) >= count, key
        assert len(set(times[key])) == len(times[key]), "none is there twice"
    assert not (await guest.run(f"find {FOLDER} -name '*.prog'")).stdout
    record_recovery(
        "power cut while data is captured",
        taken,
        seen="every reading that was committed is there, none twice (the time is that of a boot)",
    )
