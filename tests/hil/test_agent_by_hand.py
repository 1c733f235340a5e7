"""How-tos for people at a device, executed in a guest: configure the operating system, recover a machine by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import trio

from agent.layout import AGENT, PROGRAMS, SERVER
from schema.errors import MachineError
from tests.helpers.waiting import until
from tests.hil.agent.device import Device, joined
from tests.hil.agent.machine import agent_machine
from tests.hil.agent.releases import write
from tests.hil.rig.guest import Guest
from tests.hil.rig.vm import VirtualMachine
from tests.scope import RIG, on_demand

HOWTO = Path(__file__).parents[2] / "docs" / "howto"
JOURNALD = "/etc/systemd/journald.conf.d/80-machine-agent.conf"
SENSOR = {"components": [{"name": "s", "api": "rdk:component:sensor", "model": "fake", "attributes": {}}]}

pytestmark = on_demand(60, RIG)


@pytest.fixture(scope="module")
def machine(_source: str) -> Iterator[VirtualMachine]:
    """Yield a machine with systemd, whose /opt/machine is free."""
    with agent_machine(_source) as machine:
        yield machine


def commands(page: str, title: str, **values: str) -> str:
    """Return the shell commands of a section, with placeholders replaced."""
    section = re.split(rf"^## {re.escape(title)}$", (HOWTO / page).read_text(), flags=re.MULTILINE)[1]
    [block, *_] = re.findall(r"```sh\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    for placeholder, value in values.items():
        assert placeholder in block
        block = block.replace(placeholder, value)
    return "set -e\n" + block


async def lines(guest: Guest, command: str) -> list[str]:
    return (await guest.run(command)).stdout.splitlines()


async def test_a_machine_is_recovered_by_hand(guest: Guest, tmp_path: Path) -> None:
    page = "recover-a-machine-by-hand.md"
    first = [write(tmp_path, program, "1.0.0") for program in PROGRAMS]
    second = [write(tmp_path, program, "2.0.0") for program in PROGRAMS]
    async with joined(guest, tmp_path) as device:
        await device.save(SENSOR)
        await device.install(*first)
        await device.settled(SERVER, "1.0.0")
        for program, path in zip(PROGRAMS, await device.put(*second), strict=True):
            await device.update(program, path)
            await device.settled(program, "2.0.0")

        seen = (await guest.run(commands(page, "See what is started"))).stdout
        for name in ("launch/machine-agent", "launch/machine-server", "releases/machine-server", "run ->", "back ->"):
            assert name in seen, seen
        environment = r"tr '\0' '\n' < /proc/$(systemctl show -P MainPID machine-server)/environ | grep MACHINE_"
        assert environment in (HOWTO / page).read_text()
        print((await guest.run(environment)).stdout)

        back = Path((await lines(guest, "readlink /opt/machine/launch/machine-agent/back"))[0]).name
        server = (await device.state())[SERVER]["pid"]
        await guest.run(commands(page, "Start another release", HASH=back))
        await device.until(lambda status: status["agent"].get("version") == "1.0.0")
        await until(partial(serving, device))
        assert (await device.state())[SERVER]["pid"] == server, "machine-server was stopped"

        await device.save({**SENSOR, "agent": {"advanced_settings": {"disable_viam_server": True}}})
        await until(partial(inactive, guest))
        await guest.run(commands(page, "Start machine-server without the agent"))
        await until(partial(serving, device))
        assert await lines(guest, "systemctl is-active machine-agent || true") == ["inactive"]

        for program in PROGRAMS:
            await guest.run(f"systemctl stop {program}; rm -rf /opt/machine/releases/{program}/*")
        await guest.run("systemctl start machine-agent || true")
        await until(partial(said, guest, "nothing to start"))
        await device.save(SENSOR)
        await guest.run("systemctl stop machine-agent || true")
        await device.install(*second)
        await device.settled(SERVER, "2.0.0")
        assert not (await device.state())["wrong"]
        await guest.run("machine-agent --uninstall")


async def test_the_operating_system_is_configured_and_restored(guest: Guest, tmp_path: Path) -> None:
    page = (HOWTO / "configure-the-system.md").read_text()
    releases = [write(tmp_path, program, "1.0.0") for program in PROGRAMS]
    async with joined(guest, tmp_path) as device:
        await device.install(*releases)
        await device.settled(SERVER, "1.0.0")
        limits = {"logging_journald_system_max_use_megabytes": 200, "forward_system_logs": "all,-dbus-daemon"}
        await device.save({"agent": {"system_configuration": limits}})
        await until(partial(contains, guest, JOURNALD, "SystemMaxUse=200M"))
        status = await device.python("command.cli", "agent", "status")
        [listed] = re.findall(r"^files for the system configuration: .*$", page, re.MULTILINE)
        assert listed in status, status

        await guest.run("logger -t probe forwarded to the cloud; logger -t dbus-daemon excluded")
        await until(partial(forwarded, device, "forwarded to the cloud"))
        assert not await forwarded(device, "excluded")

        await device.save({"agent": {"advanced_settings": {"disable_system_configuration": True}}})
        await until(partial(missing, guest, JOURNALD))
        await device.save({"agent": {"system_configuration": limits}})
        await until(partial(exists, guest, JOURNALD))
        await guest.run("machine-agent --uninstall")
        assert await missing(guest, JOURNALD)


async def exists(guest: Guest, path: str) -> bool:
    return bool((await guest.run(f"ls {path} || true")).stdout)


async def contains(guest: Guest, path: str, line: str) -> bool:
    return line in await lines(guest, f"cat {path} || true")


async def missing(guest: Guest, path: str) -> bool:
    return not await exists(guest, path)


async def serving(device: Device) -> bool:
    """Return whether machine-server answers a call."""
    try:
        async with device.calls() as client:
            with trio.fail_after(30):
                await client.call("rdk:component:sensor", "s", "get_readings")
    except (MachineError, trio.TooSlowError):
        return False
    return True


async def inactive(guest: Guest) -> bool:
    return await lines(guest, "systemctl is-active machine-server || true") == ["inactive"]


async def said(guest: Guest, text: str) -> bool:
    return text in (await guest.run(f"journalctl -b -u {AGENT} -o cat --no-pager")).stdout


async def forwarded(device: Device, text: str) -> bool:
    """Return whether the cloud has an entry with this text in the log of the part."""
    answer = await device.client.call(
        "viam.app.v1.AppService", "", "get_robot_part_logs", id=device.part.id, filter=text
    )
    return any(text in entry["message"] for entry in answer["logs"])
