"""machine-agent on a fresh Debian: installed, online, updated in every way, and removed; its own update and crash."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from agent.layout import AGENT, PROGRAMS, SERVER
from rpc.api.client import ApiClient
from schema.errors import MachineError
from tests.e2e.cloud.test_command import Terminal
from tests.helpers.waiting import until
from tests.hil.agent.device import APP, Device, joined
from tests.hil.agent.machine import agent_machine
from tests.hil.agent.releases import write
from tests.hil.rig.guest import Guest
from tests.hil.rig.vm import VirtualMachine
from tests.scope import RIG, on_demand

RATE = 100  # calls per second
SECONDS = 60
ANSWER_LIMIT = 30.0  # seconds for one call; the guest has one slow processor, and starts programs meanwhile
FILES = (
    "find / -xdev -not -path '/proc*' -not -path '/run*' -not -path '/var/log/*' -not -path '/var/lib/systemd/*' "
    "-not -path '/tmp*' -not -path '/var/tmp/*' -not -path '/root/*' -printf '%y %m %u %p %l\\n' | sort; "
    "find /etc /usr/local -type f -exec sha256sum {} + | sort"
)


@pytest.fixture(scope="module")
def machine(_source: str) -> Iterator[VirtualMachine]:
    """Yield a machine with systemd, whose /opt/machine is free."""
    with agent_machine(_source) as machine:
        yield machine


@asynccontextmanager
async def file_server(folder: Path) -> AsyncIterator[int]:
    """Serve a folder on a loopback port; yield the port."""
    command = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(folder), "0"]
    process = await trio.lowlevel.open_process(command, stdout=-1, stderr=-3)
    try:
        assert process.stdout is not None
        said = b""
        while b" port " not in said:
            said += await process.stdout.receive_some()
        yield int(said.split(b" port ")[1].split()[0])
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


async def online(device: Device) -> bool:
    """Return whether the cloud has heard of the machine."""
    part = (await device.client.call(APP, "", "get_robot_part", id=device.part.id))["part"]
    return bool(part.get("last_access"))


async def test_a_machine_is_installed_updated_in_every_way_and_removed(guest: Guest, tmp_path: Path) -> None:
    first = [write(tmp_path, program, "1.0.0") for program in PROGRAMS]
    second = write(tmp_path, SERVER, "2.0.0")
    async with joined(guest, tmp_path) as device, file_server(tmp_path) as port:
        terminal, keys = Terminal(device.cloud, tmp_path / "home"), ("--keys", str(tmp_path / "keys"))
        key_id, key = device.cloud.key
        await terminal("login", f"http://{device.cloud.address}", "--key-id", key_id, MACHINE_CLOUD_KEY=key)
        await terminal("releases", "init", *keys)
        for release in first:
            await terminal("releases", "upload", str(release.path), *keys)
        await device.put(second)
        await guest.write("/etc/machine-defaults.json", json.dumps({"allow_http": True}))
        before = (await guest.run(FILES)).stdout.splitlines()

        assert not await online(device)
        began = time.monotonic()
        await device.install(*first, root=(tmp_path / "keys" / "root.json").read_bytes())
        await until(partial(online, device))
        print(f"online in the cloud {time.monotonic() - began:.1f} s after the beginning of the installation")
        await device.settled(SERVER, "1.0.0")

        exposed = guest.expose()
        exposed.port = port
        choices = {
            "upgrade by channel": ("stable", "2.0.0"),
            "downgrade by version": ("1.0.0", "1.0.0"),
            "upgrade by URL": (f"http://{exposed.address}/{second.path.name}", "2.0.0"),
            "downgrade by file": (f"file:///root/releases/{first[1].path.name}", "1.0.0"),
        }
        await terminal("releases", "upload", str(second.path), "--channel", "stable", *keys)
        for way, (choice, version) in choices.items():
            began = time.monotonic()
            await device.save(machine_server=choice)
            await device.ask("update")  # instead of at the next interval
            status = await device.settled(SERVER, version)
            print(f"{way} to {version}: {time.monotonic() - began:.1f} s, a trial of 10 s included")
            assert status["history"][-1]["result"] == "updated"
            state = await device.state()
            assert not state["wrong"]
            assert state[SERVER]["version"] == version

        await guest.run("machine-agent --uninstall")
        await guest.write("/etc/machine-defaults.json", json.dumps({"allow_http": True}))  # it was there before
        after = (await guest.run(FILES)).stdout.splitlines()
        assert sorted(set(after) ^ set(before)) == []


@on_demand(50, RIG)
async def test_updates_and_crashes_of_the_agent_disturb_no_call_of_machine_server(guest: Guest, tmp_path: Path) -> None:
    first, second = [write(tmp_path, program, "1.0.0") for program in PROGRAMS], write(tmp_path, AGENT, "2.0.0")
    async with joined(guest, tmp_path) as device:
        sensor = {"name": "s", "api": "rdk:component:sensor", "model": "fake", "attributes": {}}
        await device.save({"components": [sensor]})
        await device.install(*first)
        await device.settled(SERVER, "1.0.0")
        [path] = await device.put(second)
        before = await device.state()
        async with device.calls() as client, trio.open_nursery() as nursery:
            answers = Answers(client)
            await answers.until_ready()
            nursery.start_soon(answers.call)
            await trio.sleep(2)
            await device.update(AGENT, path)
            status = await device.settled(AGENT, "2.0.0")
            assert status["history"][-1]["result"] == "updated"
            updated = await device.state()
            await guest.run(["kill", "-9", str(updated[AGENT]["pid"])])
            await device.until(lambda status: status["server"].get("serving"))
            killed = await device.state()
            await guest.run(["systemctl", "restart", "machine-agent"])
            await device.until(lambda status: status["server"].get("serving"))
            assert answers.calling, f"all this took longer than {SECONDS} s"
        after = await device.state()
        answers.report()
        assert [state[AGENT]["version"] for state in (before, updated, killed, after)] == ["1.0.0", *["2.0.0"] * 3]
        assert len({state[AGENT]["pid"] for state in (before, updated, killed, after)}) == 4
        assert len({state[SERVER]["pid"] for state in (before, updated, killed, after)}) == 1
        assert answers.failed == []
        assert len(answers.seconds) == RATE * SECONDS


class Answers:
    """RATE calls per second for SECONDS, each at its time, whether the former ones are answered or not."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self.seconds: list[float] = []
        self.failed: list[str] = []
        self.calling = True

    async def until_ready(self) -> None:
        """Wait until the sensor can be read."""
        await until(self._one)
        self.seconds.clear()
        self.failed.clear()

    async def call(self) -> None:
        """Make all calls."""
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for number in range(RATE * SECONDS):
                await trio.sleep_until(began + number / RATE)
                nursery.start_soon(self._one)
        self.calling = False

    async def _one(self) -> bool:
        began = trio.current_time()
        try:
            with trio.fail_after(ANSWER_LIMIT):
                await self._client.call("rdk:component:sensor", "s", "get_readings")
        except (MachineError, trio.TooSlowError) as error:
            self.failed.append(f"{error!r} after {trio.current_time() - began:.1f} s")
            return False
        self.seconds.append(trio.current_time() - began)
        return True

    def report(self) -> None:
        """Print how long the answers took."""
        ordered = sorted(self.seconds)
        print(
            f"{len(ordered)} of {RATE * SECONDS} calls answered; median {ordered[len(ordered) // 2] * 1e3:.0f} ms, "
            f"99 % within {ordered[len(ordered) * 99 // 100] * 1e3:.0f} ms, longest {ordered[-1] * 1e3:.0f} ms"
        )
