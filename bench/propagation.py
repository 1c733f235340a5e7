"""Measure the time from the call that saves a configuration until the first answer of its new resource.

`python -m bench propagation [--machines 50] [--changes 200] [--polling]`

The setup is a machine-cloud, a machine-server connected to it, and further machines that only follow their
configuration, each with its own connection. Changes alternately add a resource with a new name to the machine-server
and save the configuration of another machine. The resource is polled every 2 ms, so figures are up to 2 ms too large.

With `--polling`, all machines only call `RobotService/Config` every 10 seconds (the published interval), like a server
without our push channel. The configuration of each machine is saved at random times.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog
import trio

from rpc.access.credential_types import PART_SECRET
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from schema.document.cloud import Cloud
from schema.errors import MachineError
from support.worker import Worker
from uplink.configuration import CloudSource
from uplink.dial import address_of

APP = "viam.app.v1.AppService"
ROBOT = "viam.app.v1.RobotService"
SENSOR = "rdk:component:sensor"
LIMIT = 30.0  # seconds for one change
INTERVAL = 10.0  # seconds between polls: the published default


@asynccontextmanager
async def process(*words: str, log: Path, **environment: str) -> AsyncIterator[str]:
    """Run a program while the context is open; yield the address that it reports on MACHINE_READY_FD."""
    read, write = os.pipe()
    os.set_inheritable(write, True)
    with log.open("wb") as output:
        child = await trio.lowlevel.open_process(
            [sys.executable, "-m", *words],
            stdout=output,
            stderr=output,
            pass_fds=[write],
            env={**os.environ, **environment, "MACHINE_READY_FD": str(write)},
        )
    os.close(write)
    try:
        async with trio.lowlevel.FdStream(read) as ready:
            said = (await ready.receive_some()).decode()
            if not said:
                raise RuntimeError(f"{words[0]} did not start: see {log}")
            yield said.split()[0]
    finally:
        with trio.CancelScope(shield=True):
            child.terminate()
            await child.wait()


def document(*names: str) -> str:
    """Return a configuration with a sensor for each name."""
    return json.dumps({"components": [{"name": name, "api": SENSOR, "model": "fake"} for name in names]})


async def new_part(client: ApiClient, location: str, name: str) -> dict[str, Any]:
    """Create a machine; return its main part."""
    robot = await client.call(APP, "", "new_robot", name=name, location=location)
    part: dict[str, Any] = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
    return part


class Follower:
    """A machine that only follows its configuration."""

    def __init__(self, part: Mapping[str, Any], url: str, folder: Path) -> None:
        own = {"id": part["id"], "secret": part["secret"], "app_address": url}
        address = address_of(Cloud(id=part["id"], secret=part["secret"], app_address=url))
        worker = Worker(f"cache of {part['name']}")
        self.part: str = part["id"]
        self.source = CloudSource(address, json.dumps({"cloud": own}).encode(), folder, worker)
        self.revision = ""
        self.changed = trio.Event()

    async def run(self) -> None:
        """Follow the configuration until cancelled."""
        async with self.source.readings() as readings:
            async for reading in readings:
                self.revision = json.loads(reading.data or b"{}").get("revision", "")
                self.changed.set()
                self.changed = trio.Event()


async def measure(machines: int, changes: int) -> dict[str, list[float]]:
    """Return the seconds of each change, for the machine-server and the followers."""
    taken: dict[str, list[float]] = {"machine-server, until the resource answers": [], "others, until they have it": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = ("cloud.server.cli", "--data", str(folder / "data"), "--listen", "localhost:0")
        async with process(*words, log=folder / "cloud.log") as address:
            said = dict(line.strip().rsplit("  ", 1) for line in _printed(folder / "cloud.log"))
            facts = {key.strip(): value for key, value in said.items()}
            key = (facts["key id"], facts["key"])
            async with Channel(address, credentials=ApiKey(*key)) as channel:
                client = ApiClient(channel)
                url = f"http://{address}"
                parts = [await new_part(client, facts["location"], f"m{number}") for number in range(machines)]
                own = {"id": parts[0]["id"], "secret": parts[0]["secret"], "app_address": url}
                config = folder / "machine.json"
                config.write_text(json.dumps({"cloud": own, "network": {"bind_address": "localhost:0"}}))
                followers = [Follower(part, url, folder / part["id"]) for part in parts[1:]]
                server = process(
                    *("runtime.server.cli", "-config", str(config), "-disable-mdns", "-ftdc=false"),
                    log=folder / "server.log",
                    MACHINE_HOME=str(folder / "home"),
                )
                async with server as port, trio.open_nursery() as nursery:
                    for follower in followers:
                        nursery.start_soon(follower.run)
                    async with Channel(port, credentials=ApiKey(*key)) as to_machine:
                        machine = ApiClient(to_machine)
                        await _changed(client, machine, parts[0]["id"], "warm-up")
                        for follower in followers:
                            while not follower.revision:
                                await follower.changed.wait()
                        for number in range(changes):
                            seconds = await _changed(client, machine, parts[0]["id"], f"s{number}")
                            taken["machine-server, until the resource answers"].append(seconds)
                            if followers:
                                other = followers[number % len(followers)]
                                taken["others, until they have it"].append(await _heard(client, other, f"s{number}"))
                    nursery.cancel_scope.cancel()
    return taken


async def polled(machines: int, changes: int) -> dict[str, list[float]]:
    """Return the seconds of each change, for machines that only poll."""
    taken: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = ("cloud.server.cli", "--data", str(folder / "data"), "--listen", "localhost:0")
        async with process(*words, log=folder / "cloud.log") as address:
            said = dict(line.strip().rsplit("  ", 1) for line in _printed(folder / "cloud.log"))
            facts = {key.strip(): value for key, value in said.items()}
            async with Channel(address, credentials=ApiKey(facts["key id"], facts["key"])) as channel:
                client = ApiClient(channel)
                parts = [await new_part(client, facts["location"], f"m{number}") for number in range(machines)]
                chance = random.Random(1)
                async with trio.open_nursery() as nursery:
                    for index, part in enumerate(parts):
                        count = changes // machines + (index < changes % machines)
                        waits = [chance.uniform(0, INTERVAL) for _ in range(count)]
                        nursery.start_soon(_poll, address, client, part, waits, taken)
    return {f"polling every {INTERVAL:.0f} s, until they have it": taken}


async def _poll(
    address: str, client: ApiClient, part: Mapping[str, Any], waits: Sequence[float], taken: list[float]
) -> None:
    """Simulate one machine that polls, and save its configuration at random times."""
    revision, polled = "", trio.Event()
    secret = ApiKey(part["id"], part["secret"], type=PART_SECRET)

    async def beat() -> None:
        nonlocal revision, polled
        async with Channel(address, credentials=secret) as channel:
            machine = ApiClient(channel)
            next_poll = trio.current_time()
            while True:
                revision = (await machine.call(ROBOT, "", "config", id=part["id"]))["revision"]
                polled.set()
                polled = trio.Event()
                next_poll += INTERVAL
                await trio.sleep_until(next_poll)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(beat)
        await polled.wait()
        for number, wait in enumerate(waits):
            await trio.sleep(wait)
            before, begin = revision, time.perf_counter()
            text = document(f"s{number}")
            await client.call(APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=text)
            while revision == before:
                await polled.wait()
            taken.append(time.perf_counter() - begin)
        nursery.cancel_scope.cancel()


def _printed(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines() if line.startswith("  ")]


async def _changed(client: ApiClient, machine: ApiClient, part: str, name: str) -> float:
    begin = time.perf_counter()
    await client.call(APP, "", "update_robot_part", id=part, name="", robot_config_json=document(name))
    with trio.fail_after(LIMIT):
        while True:
            try:
                await machine.call(SENSOR, name, "get_readings")
                return time.perf_counter() - begin
            except MachineError:
                await trio.sleep(0.002)


async def _heard(client: ApiClient, other: Follower, name: str) -> float:
    before, begin = other.revision, time.perf_counter()
    await client.call(APP, "", "update_robot_part", id=other.part, name="", robot_config_json=document(name))
    with trio.fail_after(LIMIT):
        while other.revision == before:
            await other.changed.wait()
    return time.perf_counter() - begin


def main(argv: list[str]) -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench propagation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--machines", type=int, default=50)
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--polling", action="store_true")
    options = parser.parse_args(argv)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    taken = trio.run(polled if options.polling else measure, options.machines, options.changes)
    print(f"{options.machines} machines, {options.changes} changes each row; ms from the call that saves")
    print(f"{'':46}{'p50':>8}{'p99':>8}{'max':>8}")
    for name, seconds in taken.items():
        ordered = sorted(seconds) or [0.0]
        percentiles = [ordered[round((len(ordered) - 1) * share)] * 1e3 for share in (0.5, 0.99, 1.0)]
        print(f"{name:46}" + "".join(f"{value:8.1f}" for value in percentiles))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
