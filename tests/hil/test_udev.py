"""The rules in a running udev: refused before, groups and names after, and an unprivileged account that can work."""

from __future__ import annotations

import json
import re
import time

import pytest
import trio
from viam.components.board import Board
from viam.components.sensor import Sensor

from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Plant

TMP102 = "models.chips.tmp102:Tmp102Target"
RULES = "/etc/udev/rules.d/70-machine.rules"


async def owner(guest: Guest, path: str) -> str:
    """Return group and mode of a device after udev has processed every device."""
    return (await guest.run(f"udevadm settle; stat -L -c '%G %a' {path}")).stdout.strip()


async def links(guest: Guest) -> dict[str, str]:
    """Return the links below /dev/machine after udev has processed every device: name, and the node of each."""
    find = "udevadm settle; cd /dev/machine 2>/dev/null && find . -type l -printf '%P ' -exec readlink -f {} ';'"
    said = (await guest.run(find, check=False)).stdout
    return dict(line.split(" ", 1) for line in said.splitlines())


async def test_without_the_rules_an_account_is_refused_with_a_remedy(guest: Guest, plant: Plant) -> None:
    adapter = await plant.i2c_adapter()
    bank = await plant.gpio()
    done = await guest.user().run("machine hal check", check=False)
    assert done.returncode == 1
    assert "problem: udev rules 70-machine.rules: they are not installed" in done.stdout
    assert f"problem: {bank.path}: user hil may not use it" in done.stdout
    assert "should belong to group gpio with mode 0660" in done.stdout
    assert adapter.bus in done.stdout
    assert "remedy: install the rules: sudo machine hal install-rules" in done.stdout
    refused = await guest.user().run("machine hal install-rules", check=False)
    assert refused.returncode == 1
    assert "this needs root: sudo machine hal install-rules" in refused.stderr


async def test_a_dry_run_changes_nothing(guest: Guest) -> None:
    done = await guest.run("machine hal install-rules --dry-run --user hil")
    assert f"would write {RULES}" in done.stdout
    assert "would create group gpio: groupadd --system gpio" in done.stdout
    assert "would apply them to present devices: udevadm trigger" in done.stdout
    assert (await guest.run(["test", "-e", RULES], check=False)).returncode == 1
    assert (await guest.run(["getent", "group", "gpio"], check=False)).returncode != 0


async def test_the_rules_apply_to_existing_and_new_devices(guest: Guest, plant: Plant) -> None:
    adapter = await plant.i2c_adapter("RULES1")
    bank = await plant.gpio()
    cable = await guest.usb.serial("RIG0050")
    pad = await plant.make("tests.hil.guest.gamepad:Gamepad", name="Rig Pad")
    await pad.call("plug")
    camera = (await guest.run("modprobe vivid && udevadm settle", check=False)).returncode == 0

    began = time.monotonic()
    done = await guest.run("machine hal install-rules --user hil")
    print(f"install-rules took {time.monotonic() - began:.1f} s")
    assert f"write {RULES}" in done.stdout
    assert "make hil a member of gpio, i2c" in done.stdout

    assert await owner(guest, bank.path) == "gpio 660"
    assert await owner(guest, adapter.bus) == "i2c 660"
    assert await owner(guest, cable.by_id) == "dialout 660"
    found = await links(guest)
    print(json.dumps(found, indent=1))
    assert [node for name, node in found.items() if name.startswith("i2c/usb-") and "RULES1" in name] == [adapter.bus]
    serial = cable.by_id.rpartition("/")[2]
    assert found[f"serial/{serial}"] == (await guest.run(["readlink", "-f", cable.by_id])).stdout.strip()
    assert found["input/Rig_Pad"].startswith("/dev/input/event")
    if camera:
        assert any(name.startswith("video/vivid") for name in found)

    again = await guest.run("machine hal install-rules --user hil")
    assert f"{RULES} is up to date" in again.stdout
    assert "groupadd" not in again.stdout
    assert "usermod" not in again.stdout

    echo = await plant.usb(
        "tests.hil.guest.devices:Echo", name="Echo", serial="E7", endpoints={1: "bulk", 0x81: "bulk"}
    )
    (device,) = [one for one in await _usb(guest) if one["serial"] == "E7"]
    assert await owner(guest, str(device["path"])) == "plugdev 660"
    await echo.unplug()
    await pad.call("unplug")
    await guest.run("rmmod vivid", check=False)


async def _usb(guest: Guest) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads((await guest.run("machine hal --json --no-scan")).stdout)["usb"]
    return found


async def test_with_the_rules_the_account_has_access(guest: Guest, plant: Plant) -> None:
    await plant.i2c_adapter()
    await plant.gpio()
    await guest.usb.serial("RIG0051")
    done = await guest.user().run("machine hal check", check=False)
    assert done.returncode == 0, done.output
    assert done.stdout.splitlines()[-1] == "no problems"


async def test_the_account_runs_the_server_with_stable_names(guest: Guest, plant: Plant) -> None:
    adapter = await plant.i2c_adapter("RULES2")
    await adapter.attach(0x48, TMP102, temperature_c=21.5)
    bank = await plant.gpio()
    await guest.usb.serial("RIG0052")
    document = json.loads((await guest.user().run("machine hal --config")).stdout)
    (thermometer,) = [one for one in document["components"] if one["name"] == "tmp102-48"]
    link = thermometer["attributes"]["i2c_bus"]
    assert link.startswith("/dev/machine/i2c/usb-")
    assert "RULES2" in link
    async with guest.server(document, user="hil") as server, server.sdk() as sdk:
        assert (await sdk(Sensor.from_robot(sdk.robot, "tmp102-48").get_readings()))["temperature_c"] == 21.5
        pin = await sdk(Board.from_robot(sdk.robot, "local").gpio_pin_by_name(f"{bank.chip}:7"))
        await sdk(pin.set(True))
        assert await bank.value(7)
        found = re.search(r'"pid":(\d+)', server.log)
        assert found is not None
        assert (await guest.run(f"stat -c %U /proc/{found[1]}")).stdout.strip() == "hil"


async def test_a_link_follows_its_adapter_to_another_number(guest: Guest, plant: Plant) -> None:
    adapter = await plant.i2c_adapter("RULES3")
    first = adapter.bus
    (link,) = [name for name in await links(guest) if "RULES3" in name]
    await adapter.unplug()
    assert not any("RULES3" in name for name in await links(guest))
    other = await plant.i2c_adapter("RULES4")  # takes the lowest free number
    await adapter.plug()
    assert adapter.bus != first
    found = await links(guest)
    assert found[link] == adapter.bus
    assert [node for name, node in found.items() if "RULES4" in name] == [other.bus]


async def test_two_ports_of_one_name_and_their_replug(guest: Guest) -> None:
    cable = await guest.usb.serial("RIG0060")
    name = f"serial/{cable.by_id.rpartition('/')[2]}"
    assert name in await links(guest)
    await cable.unplug()
    with trio.fail_after(60):
        while name in await links(guest):
            pass
    await cable.plug()
    assert name in await links(guest)


@pytest.mark.parametrize("device", ["gpiochip", "i2c-dev", "usb-serial", "input"])
async def test_udev_accepts_the_rules(guest: Guest, plant: Plant, device: str) -> None:
    """`udevadm test` reports errors in each file of rules; `udevadm verify` is newer than the guest."""
    if device == "gpiochip":
        path = f"/sys/bus/gpio/devices/{(await plant.gpio()).chip}"
    elif device == "i2c-dev":
        path = f"/sys/class/i2c-dev/{(await plant.i2c_adapter()).bus.rpartition('/')[2]}"
    elif device == "usb-serial":
        node = (await guest.run(["readlink", "-f", (await guest.usb.serial("RIG0061")).by_id])).stdout.strip()
        path = f"/sys/class/tty/{node.rpartition('/')[2]}"
    else:
        pad = await plant.make("tests.hil.guest.gamepad:Gamepad", name="Rig Pad")
        path = f"/sys/class/input/{(await pad.call('plug')).rpartition('/')[2]}"
    done = await guest.run(["udevadm", "test", path], check=False)
    wrong = [
        line
        for line in done.output.splitlines()
        if "70-machine.rules" in line and any(word in line.lower() for word in ("invalid", "unknown", "ignor", "fail"))
    ]
    assert wrong == []
    assert done.returncode == 0


async def test_uninstalling_removes_rules_and_names_but_not_groups(guest: Guest, plant: Plant) -> None:
    await plant.i2c_adapter("RULES5")
    assert await links(guest)
    done = await guest.run("machine hal install-rules --uninstall")
    assert f"remove {RULES}" in done.stdout
    assert await links(guest) == {}
    assert (await guest.run("getent group gpio")).stdout.startswith("gpio:")
    assert (await guest.run(["test", "-e", RULES], check=False)).returncode == 1
