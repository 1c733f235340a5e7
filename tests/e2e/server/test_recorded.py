"""Events that a driver of a real process records: the order of an orderly stop, and the detection of a dead client."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import trio

from engine.host import REST_LIMIT
from engine.options import EXIT_OK
from tests.e2e.server.process import server

MOTOR = "rdk:component:motor"
RESOURCES = 200
WINDOW = 0.5  # seconds


def motor(name: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": MOTOR, "model": "test:server:recorder", "attributes": attributes}


def environment(events: Path) -> dict[str, str]:
    return {"MACHINE_MODELS": "tests.e2e.server.drivers:Recorder", "TEST_EVENTS": str(events)}


def recorded(events: Path) -> dict[tuple[str, str], float]:
    """Return the first time of each event, by event and name."""
    values: dict[tuple[str, str], float] = {}
    for line in events.read_text().splitlines():
        when, event, name = line.split()
        values.setdefault((event, name), float(when))
    return values


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_two_hundred_busy_resources_stop_in_order(number: int, tmp_path: Path) -> None:
    rng = random.Random(number)
    needs = {n: sorted(rng.sample(range(n), k=min(n, rng.randrange(4)))) for n in range(RESOURCES)}
    tricks = {50: "hang", 100: "crash", 150: "stubborn"}
    entries = [motor(f"m{n}", needs=[f"m{d}" for d in needs[n]], trick=tricks.get(n, "")) for n in needs]
    events = tmp_path / "events"
    async with server(tmp_path, {"components": entries}, running=True, env=environment(events)) as process:
        began = time.monotonic()
        assert await process.stop(number) == EXIT_OK
        assert time.monotonic() - began < REST_LIMIT + 30  # the stop that hangs takes its limit, the others nothing
    seen = recorded(events)
    for n, dependencies in needs.items():
        assert seen["stop", f"m{n}"] <= seen["end", f"m{n}"], n
        for dependency in dependencies:
            assert seen["start", f"m{dependency}"] < seen["start", f"m{n}"]
            assert seen["end", f"m{n}"] < seen["stop", f"m{dependency}"], (n, dependency)


CLIENT = """
import sys, time, trio
from rpc.api.client import ApiClient
from rpc.client.channel import Channel
async def main():
    async with Channel(sys.argv[1]) as channel:
        session = await ApiClient(channel).call("viam.robot.v1.RobotService", "", "start_session")
        client = ApiClient(channel, metadata={"viam-sid": session["id"]})
        begun = time.monotonic()
        await client.call("rdk:component:motor", "m", "set_power", power_pct=0.5)
        print(f"{session['heartbeat_window'].total_seconds()} {begun} moving", flush=True)
        await trio.sleep_forever()
trio.run(main)
"""


async def test_the_motor_of_a_killed_client_stops_when_its_session_expires(tmp_path: Path) -> None:
    """unit/engine/test_machine.py shows in virtual time that it is stopped after exactly one window."""
    events = tmp_path / "events"
    network = {"bind_address": "localhost:0", "sessions": {"heartbeat_window": f"{WINDOW * 1000:.0f}ms"}}
    document = {"components": [motor("m")], "network": network}
    async with server(tmp_path, document, running=True, env=environment(events)) as process:
        events.unlink(missing_ok=True)
        client = await trio.lowlevel.open_process(
            [sys.executable, "-c", CLIENT, process.address], stdout=subprocess.PIPE
        )
        assert client.stdout is not None
        said = b""
        with trio.fail_after(60):
            while not said.endswith(b"moving\n"):
                data = await client.stdout.receive_some()
                assert data, said
                said += data
            client.kill()
            await client.wait()
            while ("stop", "m") not in (seen := recorded(events)):  # noqa: ASYNC110 - the file of another process
                await trio.sleep(0.02)
        await client.stdout.aclose()
    window, begun = map(float, said.split()[:2])
    assert window == WINDOW
    assert seen["stop", "m"] - begun >= WINDOW  # both are from the kernel's monotonic clock
