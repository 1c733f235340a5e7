"""machine-server as a unit of systemd, which is PID 1 of the guest."""

from __future__ import annotations

import time

import pytest
import trio
from viam.components.board import Board

from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Bank, Plant
from tests.hil.rig.record import Recorder
from tests.hil.rig.sdk import open_sdk
from tests.hil.rig.server import network, write_document

CONFIG = "/etc/machine.json"
pytestmark = pytest.mark.systemd

UNIT = f"""[Unit]
Description=Machine

[Service]
ExecStart=/usr/local/bin/machine-server -config {CONFIG}
Restart=always
RestartSec=0
TimeoutStopSec=70
"""
LAMP, HEATER = 4, 5  # lines; the heater's safe level is high
LIMIT = 60.0
READY = '"ready":1'  # in the line that reports the first attempt to start every resource


async def start_unit(guest: Guest, bank: Bank) -> None:
    attributes = {"pins": {"lamp": f"{bank.label}:{LAMP}", "heater": f"{bank.label}:{HEATER}"}, "safe_high": ["heater"]}
    board = {"name": "board", "api": "rdk:component:board", "model": "linux", "attributes": attributes}
    await write_document(guest, CONFIG, {"components": [board], "network": network()})
    await guest.write("/run/systemd/system/machine.service", UNIT)
    before = await started(guest)
    await guest.run("systemctl daemon-reload && systemctl start machine")
    await wait_started(guest, before + 1)


async def started(guest: Guest) -> int:
    """Return how often the unit has started, according to its journal."""
    return (await guest.run("journalctl -o cat -u machine")).stdout.count(READY)


async def wait_started(guest: Guest, count: int) -> None:
    """Wait until the unit has started `count` times."""
    await journal(guest, READY, count)


async def journal(guest: Guest, text: str, count: int = 1) -> str:
    """Return the unit's journal once it contains `text` `count` times: entries arrive with a delay."""
    following = await guest.start(["journalctl", "-fn", "all", "-o", "cat", "-u", "machine"])
    with trio.fail_after(LIMIT):
        while following.stdout.count(text) < count:
            await following.wait_change()
    await following.stop()
    return following.stdout


async def show(guest: Guest, *names: str) -> list[str]:
    done = await guest.run(["systemctl", "show", "machine", *(f"-P{name}" for name in names)])
    return done.stdout.split()


async def test_a_stop_by_systemd_leaves_outputs_safe(guest: Guest, plant: Plant) -> None:
    bank = await plant.gpio()
    await start_unit(guest, bank)
    port = await guest.forward(8080)
    async with open_sdk(f"127.0.0.1:{port}") as sdk:
        board = Board.from_robot(sdk.robot, "board")
        await sdk((await sdk(board.gpio_pin_by_name("lamp"))).set(True))
        await sdk((await sdk(board.gpio_pin_by_name("heater"))).set(False))
        await bank.wait_value(LAMP, True)
        await bank.wait_value(HEATER, False)
        before = await guest.monotonic()
        start = time.monotonic()
        await guest.run("systemctl stop machine")
        print(f"stopped in {time.monotonic() - start:.2f} s")
    assert await show(guest, "Result", "ExecMainStatus", "ActiveState") == ["success", "0", "inactive"]
    lamp = await bank.history(LAMP, before)
    heater = await bank.history(HEATER, before)
    assert [(event["what"], event["high"]) for event in lamp] == [("set", False), ("released", False)]
    assert (heater[0]["what"], heater[0]["high"]) == ("set", True)
    log = await journal(guest, "stopped\t")
    order = [log.index(word) for word in ("received SIGTERM", "stopped\t")]
    assert order == sorted(order)
    await guest.unforward(port)


async def test_a_killed_server_leaves_no_output_on_and_is_restarted(
    guest: Guest, plant: Plant, record_recovery: Recorder
) -> None:
    bank = await plant.gpio()
    await start_unit(guest, bank)
    port = await guest.forward(8080)
    async with open_sdk(f"127.0.0.1:{port}") as sdk:
        board = Board.from_robot(sdk.robot, "board")
        await sdk((await sdk(board.gpio_pin_by_name("lamp"))).set(True))
    await bank.wait_value(LAMP, True)
    before, before_kill = await guest.monotonic(), await started(guest)
    start = time.monotonic()
    await guest.run("systemctl kill --signal=KILL machine")
    released = await bank.wait_event(LAMP, "released", since=before)
    assert not await bank.value(LAMP)
    print(f"the kernel let the line go {released - before:.3f} s after the kill")
    await wait_started(guest, before_kill + 1)
    taken = time.monotonic() - start
    async with open_sdk(f"127.0.0.1:{port}") as sdk:
        board = Board.from_robot(sdk.robot, "board")
        assert not await sdk((await sdk(board.gpio_pin_by_name("lamp"))).get())
    record_recovery(
        "machine-server killed while an output is on",
        taken,
        seen="the kernel lets go of the line at once; systemd starts the server again, the output is at its safe level",
    )
    await guest.run("systemctl stop machine")
    await guest.unforward(port)


async def test_machine_server_installs_and_removes_its_own_service(guest: Guest) -> None:
    async def facts() -> list[str]:
        """Return the values in the order of systemd, without empty ones."""
        done = await guest.run("systemctl show machine-server -PMainPID -PActiveState -PUnitFileState")
        return done.stdout.split()

    await write_document(guest, CONFIG, {"components": [], "network": network()})
    listing = "find /etc/systemd /usr/local/bin /usr/local/lib/systemd /opt -printf '%p %M %u %l\\n' | sort"
    before = (await guest.run(listing)).stdout
    done = await guest.run(["machine-server", "-install", "-config", CONFIG, "-disable-mdns"])
    assert "machine-server.service: enabled and started" in done.stdout
    process, *state = await facts()
    assert state == ["active", "enabled"]
    words = (await guest.run(["cat", f"/proc/{process}/cmdline"])).stdout.rstrip("\0").split("\0")
    assert words[-3:] == ["-config", CONFIG, "-disable-mdns"]
    await guest.run(["machine-server", "-install", "-config", CONFIG])
    again, *state = await facts()
    assert (again != process, state) == (True, ["active", "enabled"])
    await guest.run(["machine-server", "-uninstall"])
    assert (await guest.run(listing)).stdout == before
    assert await facts() == ["0", "inactive"]
