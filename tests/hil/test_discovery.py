"""`machine hal` and the discovery service on real drivers: what they find, and that the suggested entries work."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

import pytest
import trio
from grpclib.exceptions import GRPCError
from viam.components.board import Board
from viam.components.sensor import Sensor
from viam.services.discovery import DiscoveryClient

from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Plant
from tests.hil.rig.sdk import Sdk

TMP102 = "models.chips.tmp102:Tmp102Target"
BME280 = "models.chips.bme280:Bme280Target"


async def hal(guest: Guest, *arguments: str) -> Any:
    """Return the parsed output of `machine hal --json`."""
    return json.loads((await guest.run(["machine", "hal", *arguments, "--json"])).stdout)


async def heard(sdk: Sdk, name: str) -> Any:
    """Return the readings of a serial sensor; None until a line has arrived."""
    with contextlib.suppress(GRPCError):
        return await sdk(Sensor.from_robot(sdk.robot, name).get_readings())
    return None


@pytest.mark.qemu("User-Mode Linux has no serial port of a chipset, /dev/ttyS0")
async def test_an_empty_guest_is_scanned(guest: Guest) -> None:
    found = await hal(guest)
    assert found["board"]["name"] == "generic"
    assert found["gpio"] == found["pwm"] == found["spi"] == []
    assert [port["path"] for port in found["serial"]] == ["/dev/ttyS0"]
    assert not any(bus["name"].startswith("i2c-tiny-usb") for bus in found["i2c"])
    assert "generic computer" in (await guest.run("machine hal")).stdout


async def test_gpio_chips_with_names_and_users_of_lines(guest: Guest, plant: Plant) -> None:
    bank = await plant.gpio(8, label="rig-bank", names={3: "DOOR"})
    holder = await guest.start(["gpioset", "--mode=signal", bank.chip, "4=1"])
    with trio.fail_after(60):
        await bank.wait_value(4, True)
    (chip,) = [chip for chip in (await hal(guest))["gpio"] if chip["name"] == bank.chip]
    assert (chip["label"], chip["count"], chip["path"]) == ("rig-bank", 8, bank.path)
    assert chip["lines"][3] == {"offset": 3, "name": "DOOR", "used_by": "", "output": False}
    assert (chip["lines"][4]["used_by"], chip["lines"][4]["output"]) == ("gpioset", True)
    table = (await guest.run("machine hal --lines")).stdout
    assert re.search(rf"{bank.chip}:4 +out +gpioset", table)
    assert re.search(rf"{bank.chip} +rig-bank +8 +1", table)
    await holder.stop()


async def test_scanning_a_real_bus_writes_nothing_to_chips(guest: Guest, plant: Plant) -> None:
    adapter = await plant.i2c_adapter()
    await adapter.attach(0x48, TMP102, temperature_c=21.5)
    await adapter.attach(0x76, BME280)
    (bus,) = [bus for bus in (await hal(guest))["i2c"] if bus["path"] == adapter.bus]
    assert bus["scanned"]
    assert [device["address"] for device in bus["devices"]] == [0x48, 0x76]
    assert bus["devices"][0]["likely"][:2] == ["TMP102", "LM75"]
    assert await adapter.messages(0x48) == await adapter.messages(0x76) == 1, "one question each"
    table = (await guest.run("machine hal")).stdout
    assert re.search(rf"0x48 +{adapter.bus} +TMP102, LM75", table)
    asked = await adapter.messages()
    await hal(guest, "--no-scan")
    assert await adapter.messages() == asked


async def test_addresses_used_by_kernel_drivers_are_named_and_not_probed(guest: Guest, plant: Plant) -> None:
    adapter = await plant.i2c_adapter()
    await adapter.attach(0x48, "models.chips.lm75:Lm75Target", temperature_c=21.5)
    await adapter.attach(0x49, TMP102, temperature_c=20.0)
    number = adapter.bus.removeprefix("/dev/i2c-")
    await guest.run(f"modprobe lm75; echo lm75 0x48 > /sys/bus/i2c/devices/i2c-{number}/new_device")
    before = await adapter.messages(0x48)
    (bus,) = [bus for bus in (await hal(guest))["i2c"] if bus["path"] == adapter.bus]
    assert [(device["address"], device["driver"]) for device in bus["devices"]] == [(0x48, "lm75"), (0x49, "")]
    assert await adapter.messages(0x48) == before
    await guest.run(f"echo 0x48 > /sys/bus/i2c/devices/i2c-{number}/delete_device")


async def test_an_smbus_adapter_without_i2c_is_scanned_too(guest: Guest) -> None:
    await guest.run("modprobe i2c-stub chip_addr=0x1d,0x53 && udevadm settle")
    (bus,) = [bus for bus in (await hal(guest))["i2c"] if "stub" in bus["name"].lower()]
    assert [device["address"] for device in bus["devices"]] == [0x1D, 0x53]
    await guest.run("rmmod i2c-stub")


async def test_a_stuck_bus_is_reported_and_other_hardware_is_listed(guest: Guest, plant: Plant) -> None:
    stuck, free = await plant.i2c_adapter("STUCK"), await plant.i2c_adapter("FREE")
    await free.attach(0x48, TMP102)
    await stuck.stall()
    done = await guest.run("machine hal check", check=False, limit=60)
    assert done.returncode == 1
    assert re.search(rf"problem: {stuck.bus} \(.*\): the scan failed", done.stdout)
    buses = {bus["path"]: bus for bus in (await hal(guest))["i2c"]}
    assert not buses[stuck.bus]["scanned"]
    assert [device["address"] for device in buses[free.bus]["devices"]] == [0x48]
    await stuck.stall(False)


async def test_serial_ports_and_usb_devices_by_their_descriptors(guest: Guest, plant: Plant) -> None:
    cable = await guest.usb.serial("RIG0042")
    await plant.usb("tests.hil.guest.devices:Echo", name="Echo", serial="E1", endpoints={1: "bulk", 0x81: "bulk"})
    found = await hal(guest)
    (port,) = [port for port in found["serial"] if port["serial"] == "RIG0042"]
    assert port["stable"][0] == cable.by_id
    assert (port["vendor"], port["product"], port["serial"]) == ("0403", "6001", "RIG0042")
    devices = {device["serial"]: device for device in found["usb"]}
    assert devices["RIG0042"]["drivers"] == ["ftdi_sio"]
    assert devices["E1"]["drivers"] == []
    assert devices["E1"]["title"] == "Echo"
    assert not any(device["vendor"] == "1d6b" for device in found["usb"]), "hubs are left out"


async def test_a_gamepad_and_a_camera(guest: Guest, plant: Plant) -> None:
    pad = await plant.make("tests.hil.guest.gamepad:Gamepad", name="Rig Pad")
    path = await pad.call("plug")
    camera = (await guest.run("modprobe vivid && udevadm settle", check=False)).returncode == 0
    found = await hal(guest)
    (device,) = [device for device in found["inputs"] if device["name"] == "Rig Pad"]
    assert (device["kind"], device["path"]) == ("gamepad", path)
    config = json.loads((await guest.run("machine hal --config")).stdout)["components"]
    by_model = {component["model"]: component["attributes"] for component in config}
    assert by_model["rdk:builtin:gamepad"]["path"] == device["path"]
    if camera:
        assert any("vivid" in one["name"] for one in found["cameras"])
        assert by_model["rdk:builtin:webcam"]["video_path"] == found["cameras"][0]["stable"][0]
    await pad.call("unplug")
    await guest.run("rmmod vivid", check=False)


async def test_printed_configuration_entries_run(guest: Guest, plant: Plant) -> None:
    adapter = await plant.i2c_adapter()
    chip = await adapter.attach(0x48, TMP102, temperature_c=21.5)
    bank = await plant.gpio()
    cable = await guest.usb.serial("RIG0043")
    done = await guest.run("machine hal --config")
    document = json.loads(done.stdout)
    assert "0x48 on " in done.stderr
    assert "`model` may also be" in done.stderr
    names = {component["name"]: component for component in document["components"]}
    assert {"local", "tmp102-48", "serial"} <= set(names)
    assert names["serial"]["attributes"]["path"] == cable.by_id, "a port of the computer itself has nothing behind it"
    async with guest.server(document) as server, server.sdk() as sdk:
        assert (await sdk(Sensor.from_robot(sdk.robot, "tmp102-48").get_readings()))["temperature_c"] == 21.5
        await chip.set(temperature_c=-3.0)
        assert (await sdk(Sensor.from_robot(sdk.robot, "tmp102-48").get_readings()))["temperature_c"] == -3.0
        pin = await sdk(Board.from_robot(sdk.robot, "local").gpio_pin_by_name(f"{bank.chip}:7"))
        await sdk(pin.set(True))
        assert await bank.value(7)
        readings = None
        with trio.fail_after(60):
            while readings is None:  # the device sends repeatedly, as a sensor does
                await cable.far.send_all(b"hello\n")
                readings = await heard(sdk, "serial")
        assert readings["value"] == "hello"
    assert not await bank.value(7)


async def test_the_discovery_service_through_the_official_sdk(guest: Guest, plant: Plant) -> None:
    adapter = await plant.i2c_adapter()
    await adapter.attach(0x48, TMP102, temperature_c=21.5)
    await adapter.attach(0x76, BME280)
    cable = await guest.usb.serial("RIG0044")
    attributes = {"i2c_bus": adapter.bus, "i2c_address": "0x48"}
    document = {
        "components": [
            {"name": "t", "api": "rdk:component:sensor", "model": "tmp102", "attributes": attributes},
        ],
        "services": [{"name": "finder", "api": "rdk:service:discovery", "model": "hardware"}],
    }
    async with guest.server(document) as server, server.sdk() as sdk:
        finder = DiscoveryClient.from_robot(sdk.robot, "finder")
        before = await adapter.messages(0x48)
        found = {config.name: config for config in await sdk(finder.discover_resources())}
        assert await adapter.messages(0x48) == before, "an address that a resource has is not asked"
        assert not any(name.endswith("-48") for name in found)
        assert found["bme280-76"].model == "rdk:builtin:bme280"
        assert found["bme280-76"].api == "rdk:component:sensor"
        assert found["bme280-76"].attributes.fields["i2c_bus"].string_value == adapter.bus
        assert found["serial"].attributes.fields["path"].string_value == cable.by_id
        answer = await sdk(finder.do_command({"command": "inventory"}))
        bus = next(bus for bus in answer["i2c"] if bus["path"] == adapter.bus)
        assert [(device["address"], device["driver"]) for device in bus["devices"]] == [
            (0x48, "rdk:component:sensor/t"),
            (0x76, ""),
        ]
        problems = (await sdk(finder.do_command({"command": "problems"})))["problems"]
        assert any("70-machine.rules" in problem["subject"] for problem in problems)
