"""machine-server on disks that are full, fail or hang: no stored data is lost, and the cause is reported."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import trio

from rpc.api.client import ApiClient
from tests.hil.rig.disk import MIB, Disk
from tests.hil.rig.guest import Guest
from tests.hil.rig.server import Server, network

PLACE = "/mnt/data"
FOLDER = f"{PLACE}/capture"
HOME = f"{PLACE}/home"
MANAGER = "rdk:service:data_manager"
AGAIN = "the disk accepts captured data again"


def capturing(method: str, frequency: float) -> list[dict[str, Any]]:
    methods = [{"method": method, "capture_frequency_hz": frequency}]
    return [{"type": "data_manager", "attributes": {"capture_methods": methods}}]


def entry(api: str, name: str, method: str, frequency: float) -> dict[str, Any]:
    return {"name": name, "api": api, "model": "fake", "service_configs": capturing(method, frequency)}


DOCUMENT = {
    "components": [
        entry("rdk:component:sensor", "s", "Readings", 20),
        entry("rdk:component:camera", "eye", "GetImages", 1),
    ],
    "services": [
        {
            "name": "data",
            "api": MANAGER,
            "attributes": {"capture_dir": FOLDER, "maximum_capture_file_size_bytes": 4000},
        }
    ],
}
MACHINE = json.dumps({"network": network()})
MANAGED = json.dumps({"network": network(), "cloud": {"app_address": "http://127.0.0.1:9", "id": "p", "secret": "s"}})


async def until(client: ApiClient, true: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
    """Return the data manager's status as soon as a condition is true of it."""
    with trio.fail_after(90):
        while True:
            status: Mapping[str, Any] = await client.call(MANAGER, "data", "get_status")
            if true(status):
                return status


def total(status: Mapping[str, Any], what: str) -> int:
    return sum(int(method[what]) for method in status["methods"].values())


async def state_of_manager(client: ApiClient) -> tuple[str, str]:
    status = await client.call("viam.robot.v1.RobotService", "", "get_machine_status")
    (found,) = [one for one in status["resources"] if MANAGER in str(one["name"])]
    return found["state"], found["error"]


async def captured(guest: Guest) -> int:
    """Return the number of readings in complete files, after all files have been closed."""
    files = json.loads((await guest.run(f"machine data ls {FOLDER} --json")).stdout)["files"]
    assert {one["state"] for one in files} == {"closed"}
    return sum(one["readings"] for one in files)


async def goes_on(client: ApiClient, server: Server, *, most: int = 1) -> Mapping[str, Any]:
    """Return once the disk is used again; that is logged at most so many times."""
    before = await until(client, lambda status: not status["problem"])
    after = await until(client, lambda status: total(status, "committed") > total(before, "committed") + 20)
    assert (await state_of_manager(client))[0] == "READY"
    assert 1 <= server.log.count(AGAIN) <= most
    return after


async def test_capture_waits_for_space_and_loses_nothing(guest: Guest) -> None:
    disk = await guest.disk(PLACE, 16 * MIB)
    async with guest.server(DOCUMENT) as server, server.client() as client:
        await until(client, lambda status: total(status, "committed") > 30)
        await disk.fill()
        await until(client, lambda status: "No space left on device: free some space" in status["problem"])
        state, error = await state_of_manager(client)
        assert (state, "free some space" in error) == ("UNHEALTHY", True)
        await disk.free()
        found = await goes_on(client, server)
        assert total(found, "lost") == 0
    assert await captured(guest) >= total(found, "captured")


async def test_capture_waits_while_writes_fail_and_keeps_what_was_committed(guest: Guest) -> None:
    disk = await guest.disk(PLACE, 16 * MIB)
    async with guest.server(DOCUMENT) as server, server.client() as client:
        await until(client, lambda status: total(status, "committed") > 30)
        await disk.fail(sectors=await disk.unused(), reads=False)
        await until(client, lambda status: "Input/output error: the disk fails" in status["problem"])
        found = await until(client, lambda status: total(status, "captured") > total(status, "written") + 60)
        assert AGAIN not in server.log, "nothing has proved that"
        committed = total(found, "committed")
        await disk.repair()
        found = await goes_on(client, server)
        assert total(found, "lost") == 0
        refused = total(found, "written") - total(found, "committed")
    assert await captured(guest) >= max(committed, total(found, "committed"))
    print(f"{refused} of {total(found, 'written')} readings were written and not committed")


async def test_capture_continues_after_a_failed_disk_is_remounted(guest: Guest) -> None:
    disk = await guest.disk(PLACE, 16 * MIB)
    async with guest.server(DOCUMENT) as server, server.client() as client:
        committed = total(await until(client, lambda status: total(status, "committed") > 30), "committed")
        await disk.fail(reads=False)
        await guest.run(f"mkdir {PLACE}/x; sync -f {PLACE}", check=False)  # a write of the journal
        await until(client, lambda status: "Input/output error: the disk fails" in status["problem"])
        await disk.repair()
        assert (await guest.run(["touch", f"{PLACE}/x"], check=False)).returncode, "the journal has ended"
        with trio.fail_after(60):
            while (await guest.run(["umount", PLACE], check=False)).returncode:  # a check of the disk may be running
                pass
        await disk.check()
        await disk.mount()
        found = await goes_on(client, server, most=2)  # while nothing is mounted, the folder below may accept data
    assert await captured(guest) >= committed + 20, found


async def test_a_stalled_disk_delays_no_call(guest: Guest) -> None:
    disk = await guest.disk(PLACE, 16 * MIB)
    async with guest.server(DOCUMENT, env={"MACHINE_HOME": HOME}) as server, server.client() as client:
        await until(client, lambda status: total(status, "committed") > 30)
        await disk.stall()
        try:
            await until(client, lambda status: "the disk has not answered for 10 s" in status["problem"])
            await until(client, lambda status: total(status, "captured") > total(status, "written") + 60)
        finally:
            await disk.repair()
        found = await goes_on(client, server)
        assert total(found, "lost") == 0
    assert await captured(guest) >= total(found, "captured")


SAVE = """
import sys, trio
from pathlib import Path
from uplink.cached import load, path_of, save

async def here(function):
    return function()

path = path_of(Path(sys.argv[1]), "part")
if len(sys.argv) > 2:
    try:
        trio.run(save, path, b'{"number": %d}' % int(sys.argv[2]), here)
    except OSError as error:
        print(error.strerror)
kept = load(path)
print(bytes(kept.document).decode() if kept is not None else None)
"""


async def test_the_cached_configuration_is_the_old_or_the_new_one(guest: Guest) -> None:
    disk = await guest.disk(PLACE, 16 * MIB)

    async def save(*number: str) -> list[str]:
        return (await guest.run(["python3", "-c", SAVE, HOME, *number])).stdout.splitlines()

    assert await save("1") == ['{"number": 1}']
    await disk.fill()
    assert await save("2") == ["No space left on device", '{"number": 1}']
    await disk.free()
    assert await save("3") == ['{"number": 3}']
    await disk.fail(sectors=await disk.unused(), reads=False)
    assert await save("4") == ["Input/output error", '{"number": 3}']
    await disk.fail()
    assert (await save("5"))[-1] in ("None", '{"number": 3}', '{"number": 5}')
    await disk.repair()
    await disk.unmount()
    await disk.check()
    await disk.mount()
    assert await save() in (['{"number": 3}'], ['{"number": 5}'])


async def started(guest: Guest, config: str, *options: str, home: str = "", message: str = "") -> str:
    """Start machine-server; return its output when it runs and has printed `message`, or has ended."""
    env = {"MACHINE_READY_FD": "3", **({"MACHINE_HOME": home} if home else {})}
    command = ["machine-server", "-config", config, "-hardware", "sim", *options]
    process = await guest.start(command, env=env, descriptors=(0, 2, 2, 1))
    with trio.fail_after(90):
        while process.returncode is None and not ("running\n" in process.stdout and message in process.output):
            await process.wait_change()
    runs = process.returncode is None
    assert await process.stop() == (0 if runs else 1)
    return f"{'runs' if runs else 'ended'}: {process.output}"


async def test_a_start_succeeds_or_reports_the_fault_of_the_disk(guest: Guest) -> None:
    disk = await guest.disk(PLACE, 16 * MIB)
    await guest.write("/tmp/machine.json", MACHINE)
    await guest.write("/tmp/managed.json", MANAGED)
    await guest.write(f"{PLACE}/machine.json", MACHINE)

    async def with_home(config: str, message: str = "") -> str:
        return await started(guest, config, home=HOME, message=message)

    assert (await with_home("/tmp/managed.json")).startswith("runs")
    await disk.fill()
    full = '"reason":"No space left on device","remedy":"free space'
    said = await with_home("/tmp/machine.json", full)  # the recorder of diagnostic data writes in a worker thread
    assert said.startswith("runs")
    assert full in said
    assert (await with_home("/tmp/managed.json")).startswith("runs"), "its folders are there"
    said = await started(guest, "/tmp/managed.json", home=f"{PLACE}/other")
    assert "ended" in said
    assert "logs-outbox cannot be used: No space left on device: free some space there" in said
    await disk.free()
    await disk.unmount()
    await disk.mount("ro")
    assert "logs-outbox cannot be used: Read-only file system: mount" in await with_home("/tmp/managed.json")
    assert (await with_home("/tmp/machine.json")).startswith("runs")
    log = f"{PLACE}/server.log"
    assert f"-log-file {log}: Read-only file system" in await started(guest, "/tmp/machine.json", "-log-file", log)
    await disk.unmount()
    await disk.mount()
    await unreadable(guest, disk, f"{HOME}/logs-outbox/p/*.segment")
    assert (await with_home("/tmp/managed.json")).startswith("runs"), "messages are lost, not the machine"
    await unreadable(guest, disk, f"{PLACE}/machine.json")
    said = await started(guest, f"{PLACE}/machine.json")
    assert f"-config {PLACE}/machine.json: cannot be read: Input/output error" in said


async def unreadable(guest: Guest, disk: Disk, pattern: str) -> None:
    """Make the disk fail at the sectors of the files' content."""
    paths = (await guest.run(f"sync; ls {pattern}")).stdout.split()
    await disk.fail(sectors=[part for path in paths for part in await disk.sectors_of(path)])
