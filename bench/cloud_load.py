"""The load on a cloud: simulated machines in a process of their own. Prints one JSON object for each command on stdin.

`python -m bench.cloud_load ADDRESS < commands`; see bench.cloud.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import trio

from rpc.api.client import ApiClient
from runtime.cloud.dial import CloudAddress, Refused, connected
from runtime.cloud.source import messages

ROBOT = "viam.app.v1.RobotService"
SYNC = "viam.app.datasync.v1.DataSyncService"
START = datetime(2026, 1, 1, tzinfo=UTC)
LINES = 100  # log entries in one call, as machine-server's queue sends them
READINGS = 100  # readings in one upload
MEMBERS = 8  # callers at once of what is measured flat out
CONNECTING = 50  # machines that connect at once

Call = Callable[[ApiClient, str, int], Awaitable[Any]]


class Machine:
    """One simulated machine: a push channel that is held, and a connection for calls."""

    def __init__(self, address: CloudAddress) -> None:
        self.address = address
        self.heard = 0

    async def hold(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Follow the configuration; ready with the first message."""
        while True:
            try:
                async with connected(self.address) as socket:
                    async for _ in messages(socket):
                        self.heard += 1
                        if self.heard == 1:
                            task_status.started()
                return
            except Refused:  # its secret is as new as this
                if self.heard:
                    raise
                await trio.sleep(0.5)

    async def poll(
        self, every: float, took: list[float], begin: trio.Event, *, task_status: trio.TaskStatus[None]
    ) -> None:
        """Ask for the configuration as machines do that only poll, over one connection, from a random moment on."""
        async with self.address.channel() as channel:
            client = ApiClient(channel)
            await client.call(ROBOT, "", "config", id=self.address.part)
            task_status.started()
            await begin.wait()
            await trio.sleep(random.uniform(0, every))
            while True:
                asked = time.perf_counter()
                await client.call(ROBOT, "", "config", id=self.address.part)
                took.append(time.perf_counter() - asked)
                await trio.sleep(every)


async def _log(client: ApiClient, part: str, number: int) -> None:
    entries = [
        {"message": f"message {number} of {one}", "level": "info", "logger_name": "rdk.bench", "host": "bench"}
        for one in range(LINES)
    ]
    await client.call(ROBOT, "", "log", id=part, logs=entries)


async def _upload(client: ApiClient, part: str, number: int) -> None:
    moment = START + timedelta(seconds=number)
    metadata = {
        "part_id": part,
        "component_type": "rdk:component:sensor",
        "component_name": "s",
        "method_name": "Readings",
        "type": "TABULAR_SENSOR",
    }
    contents = [
        {
            "metadata": {"time_requested": moment + timedelta(milliseconds=one), "time_received": moment},
            "struct": {"readings": {"a": float(one), "b": number / 7, "c": 0.5}},
        }
        for one in range(READINGS)
    ]
    await client.call(SYNC, "", "data_capture_upload", metadata=metadata, sensor_contents=contents)


FLAT_OUT: Mapping[str, Call] = {
    "config": lambda client, part, _: client.call(ROBOT, "", "config", id=part),
    "log": _log,
    "upload": _upload,
}


async def flat_out(machines: Sequence[Machine], what: str, seconds: float) -> dict[str, float]:
    """As many calls as MEMBERS callers get answered, each after the other; how many a second."""
    count = 0
    offset = random.randrange(10**6) * 1000

    async def member(number: int) -> None:
        nonlocal count
        machine = machines[number % len(machines)]
        async with machine.address.channel() as channel:
            client, done = ApiClient(channel), 0
            await FLAT_OUT["config"](client, machine.address.part, 0)  # signed in
            while True:
                await FLAT_OUT[what](client, machine.address.part, offset + number * 10**7 + done)
                done += 1
                count += 1

    with trio.move_on_after(seconds):
        async with trio.open_nursery() as nursery:
            for number in range(MEMBERS):
                nursery.start_soon(member, number)
    return {"calls": count / seconds}


async def all_of(machines: Sequence[Machine], start: Callable[[Machine], Awaitable[Any]]) -> None:
    """Start each, a few at once."""
    places = trio.CapacityLimiter(CONNECTING)

    async def one(machine: Machine) -> None:
        async with places:
            await start(machine)

    async with trio.open_nursery() as starting:
        for machine in machines:
            starting.start_soon(one, machine)


async def connect(machines: Sequence[Machine], nursery: trio.Nursery) -> dict[str, float]:
    """Connect them all; they stay so in `nursery`."""
    begin = time.perf_counter()
    await all_of(machines, lambda machine: nursery.start(machine.hold))
    return {"seconds": time.perf_counter() - begin}


async def poll(machines: Sequence[Machine], every: float, seconds: float) -> dict[str, float]:
    """All of them poll for a while, once they have connected and signed in."""
    took: list[float] = []
    begin = trio.Event()
    async with trio.open_nursery() as polling:
        await all_of(machines, lambda machine: polling.start(machine.poll, every, took, begin))
        sys.stdout.write("{}\n")
        sys.stdout.flush()
        begin.set()
        await trio.sleep(seconds)
        polling.cancel_scope.cancel()
    took.sort()
    places = {name: took[round((len(took) - 1) * at)] for name, at in (("p50", 0.5), ("p99", 0.99)) if took}
    return {**places, "calls": len(took)}


async def main(address: str) -> None:
    """Carry out the commands of stdin: connect, poll, flat."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    machines: list[Machine] = []
    async with trio.open_nursery() as nursery:
        buffer = b""
        async for data in trio.lowlevel.FdStream(0):
            buffer += data
            while b"\n" in buffer:
                line, _, buffer = buffer.partition(b"\n")
                command = json.loads(line)
                if command["do"] == "connect":
                    new = [Machine(CloudAddress(address, one, one, "robot-secret", s)) for one, s in command["parts"]]
                    answer = await connect(new, nursery)
                    machines += new
                elif command["do"] == "poll":
                    answer = await poll(machines, command["every"], command["seconds"])
                else:
                    answer = await flat_out(machines, command["what"], command["seconds"])
                sys.stdout.write(json.dumps(answer) + "\n")
                sys.stdout.flush()
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(partial(main, sys.argv[1]))
