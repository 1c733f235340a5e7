"""I2C through real kernel drivers: values, each fault of the table with recovery, adapters with only SMBus calls."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from viam.components.sensor import SensorClient

from tests.hil.image.contents import USER
from tests.hil.rig import calls
from tests.hil.rig.calls import LIMIT, User, talking
from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Adapter, Plant
from tests.hil.rig.sdk import Sdk

LM75 = "models.chips.lm75:Lm75Target"
Record = Callable[..., None]


def thermometers(address: str = "0x48", **buses: str) -> dict[str, Any]:
    """Return the configuration of a machine with an LM75 on each bus."""
    return {
        "components": [
            {
                "name": name,
                "api": "rdk:component:sensor",
                "model": "lm75",
                "attributes": {"i2c_bus": bus, "i2c_address": address},
            }
            for name, bus in buses.items()
        ]
    }


async def celsius(sdk: Sdk, name: str = "t") -> float:
    """Read the sensor; unlike `Sensor.from_robot`, also if the resource was not ready when the SDK connected."""
    value: float = (await sdk(SensorClient(name, sdk.robot._channel).get_readings()))["temperature_c"]
    return value


async def refusal(sdk: Sdk, words: str, name: str = "t") -> str:
    """Repeat a call until it fails with `words` in its message; return the message."""
    return await calls.refusal(lambda: celsius(sdk, name), words)


async def swallowed(adapter: Adapter) -> None:
    """Return once a stalled adapter has received a request."""
    with trio.fail_after(LIMIT):
        while not await adapter.get("_swallowed"):
            await trio.lowlevel.checkpoint()


async def recovery(sdk: Sdk, name: str = "t") -> float:
    """Repeat a call until it succeeds; return the seconds that took."""
    return await calls.recovery(lambda: celsius(sdk, name))


USE = """
import json, sys, trio
from hal.errors import HalError
from hal.linux.i2c.bus import I2cBuses
from hal.inventory.i2c_scan import scan

def say(**what):
    print(json.dumps(what), flush=True)

async def main():
    async with I2cBuses().open(sys.argv[1]) as bus, trio.open_nursery() as nursery:
        async def lost():
            try:
                await bus.lost()
            except HalError as error:
                say(lost=str(error))

        async def carry_out(words):
            begin = trio.current_time()
            try:
                if words[0] == "scan":
                    say(found=await scan(bus))
                elif words[0] == "lost":
                    nursery.start_soon(lost)
                    say(waiting=True)
                else:
                    steps = [int(word) if word.isdigit() else bytes.fromhex(word[1:]) for word in words[1:]]
                    read = await bus.transaction(int(words[0], 0), *steps)
                    say(read=[data.hex() for data in read], seconds=trio.current_time() - begin)
            except HalError as error:
                say(fault=error.fault.value, error=str(error), seconds=trio.current_time() - begin)

        say(name=bus.name)
        rest = b""
        async for part in trio.lowlevel.FdStream(0):
            *lines, rest = (rest + part).split(b"\\n")
            for line in lines:
                await carry_out(line.decode().split())
        nursery.cancel_scope.cancel()

trio.run(main)
"""
"""Open a bus and keep it open; run commands from its input: `0x48 x00 2` (write 00, read two bytes), `scan`, `lost`."""


@asynccontextmanager
async def using(guest: Guest, bus: str) -> AsyncIterator[tuple[User, str]]:
    async with talking(guest, USE, bus) as user:
        yield user, (await user.hear())["name"]


@pytest.fixture
async def adapter(plant: Plant) -> AsyncIterator[Adapter]:
    """Yield an adapter with an LM75 at 0x48. Unplugging waits until the kernel has noticed it."""
    adapter = await plant.i2c_adapter()
    await adapter.attach(0x48, LM75, temperature_c=21.5)
    yield adapter
    await adapter.unplug()


@pytest.fixture
async def other(plant: Plant, adapter: Adapter) -> AsyncIterator[Adapter]:
    """Yield a second adapter, also with an LM75 at 0x48."""
    other = await plant.i2c_adapter("RIGI2C2")
    await other.attach(0x48, LM75, temperature_c=5.0)
    yield other
    await other.unplug()


async def test_values_match_the_plant_under_every_name_of_the_bus(guest: Guest, adapter: Adapter) -> None:
    chip = await adapter.attach(0x49, LM75, temperature_c=21.5)
    await guest.run(f"ln -sf {adapter.bus} /dev/sensors")
    number = adapter.bus.rpartition("-")[2]
    names = {"number": number, "node": adapter.bus, "link": "/dev/sensors", "title": "i2c-tiny-usb"}
    for way, bus in names.items():
        async with guest.server(thermometers("0x49", t=bus)) as server, server.sdk() as sdk:
            for value in (21.5, -10.0, 125.0):
                await chip.set(temperature_c=value)
                with trio.fail_after(LIMIT):  # until the chip has converted the value
                    while await celsius(sdk) != value:
                        pass
        print(f"by {way}: {bus}")


async def test_no_chip_answers(guest: Guest, adapter: Adapter, record_recovery: Record) -> None:
    async with guest.server(thermometers(t=adapter.bus)) as server, server.sdk() as sdk:
        await adapter.refuse(0x48)
        seen = await refusal(sdk, "address 0x48: nobody answers: check the wiring")
        await adapter.refuse(0x48, False)
        record_recovery("I2C device does not acknowledge", await recovery(sdk), seen=seen)


async def test_a_stuck_bus_delays_no_other_bus_and_recovers(
    guest: Guest, adapter: Adapter, other: Adapter, record_recovery: Record
) -> None:
    async with (
        guest.server(thermometers(t=adapter.bus, other=other.bus)) as server,
        server.sdk() as sdk,
        trio.open_nursery() as nursery,
    ):
        await adapter.stall()
        begin = time.monotonic()
        seen: list[tuple[str, float]] = []

        async def stuck() -> None:
            seen.append(
                (
                    await refusal(sdk, "the adapter does not answer: the clock or data line is held low"),
                    time.monotonic() - begin,
                )
            )

        nursery.start_soon(stuck)
        quick = 0
        with trio.fail_after(LIMIT):
            while not seen:
                assert await celsius(sdk, "other") == 5.0
                quick += 1
        print(f"the stuck call: {seen[0][0]!r} after {seen[0][1]:.1f} s; {quick} readings of the other bus meanwhile")
        assert quick > 3
        await adapter.stall(False)
        record_recovery("I2C bus stuck (clock held low)", await recovery(sdk), seen=seen[0][0])


async def test_a_server_stops_in_order_while_the_bus_is_stuck(guest: Guest, adapter: Adapter) -> None:
    async with guest.server(thermometers(t=adapter.bus)) as server, server.sdk() as sdk, trio.open_nursery() as nursery:
        await adapter.stall()
        nursery.start_soon(refusal, sdk, "i2c")
        await swallowed(adapter)
        begin = time.monotonic()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            assert await server.stop() == 0
        print(f"stopped in {time.monotonic() - begin:.1f} s")


async def test_an_adapter_unplugged_while_idle_returns_with_another_number(
    guest: Guest, adapter: Adapter, record_recovery: Record
) -> None:
    before = adapter.bus
    async with guest.server(thermometers(t="tiny-usb")) as server, server.sdk() as sdk:
        begin = time.monotonic()
        await adapter.unplug()
        await server.wait_log("t\t.*unhealthy")
        print(f"noticed in {time.monotonic() - begin:.2f} s, with nobody asking")
        seen = await refusal(sdk, "no I2C adapter is called 'tiny-usb'")
        await guest.run("modprobe i2c-stub chip_addr=0x50")  # takes the number
        try:
            await adapter.plug()
            assert adapter.bus != before
            record_recovery("I2C adapter unplugged and back as another number", await recovery(sdk), seen=seen)
        finally:
            await guest.run("rmmod i2c-stub")


async def test_an_adapter_is_unplugged_during_a_transaction(
    guest: Guest, adapter: Adapter, record_recovery: Record
) -> None:
    async with guest.server(thermometers(t="tiny-usb")) as server, server.sdk() as sdk:
        seen: list[str] = []
        begin = 0.0

        async def call() -> None:
            seen.append(await refusal(sdk, ""))
            print(f"the caller was told after {time.monotonic() - begin:.2f} s: {seen[0]}")

        async with trio.open_nursery() as nursery:
            await adapter.stall()
            nursery.start_soon(call)
            await swallowed(adapter)
            begin = time.monotonic()
            await adapter.unplug()
        await adapter.stall(False)
        await refusal(sdk, "no I2C adapter")
        await adapter.plug()
        record_recovery("I2C adapter unplugged in the middle of a transaction", await recovery(sdk), seen=seen[0])


async def test_a_bus_that_stays_open_finds_its_adapter_again(guest: Guest, adapter: Adapter) -> None:
    async with using(guest, "tiny-usb") as (user, name):
        assert (await user.ask("0x48 x00 2"))["read"] == ["1580"]
        assert await user.ask("lost") == {"waiting": True}
        await adapter.unplug()
        assert await user.hear() == {"lost": f"{name}: the adapter is gone: plug the adapter in again"}
        assert (await user.ask("0x48 x00 2"))["fault"] == "gone"
        await guest.run("modprobe i2c-stub chip_addr=0x50")
        try:
            await adapter.plug()
            assert adapter.bus != f"/dev/{name}"
            assert (await user.ask("0x48 x00 2"))["read"] == ["1580"]
        finally:
            await guest.run("rmmod i2c-stub")


async def test_a_kernel_driver_owns_the_address(guest: Guest, adapter: Adapter, record_recovery: Record) -> None:
    device = f"/sys/bus/i2c/devices/{adapter.bus.removeprefix('/dev/')}"
    async with guest.server(thermometers(t=adapter.bus)) as server, server.sdk() as sdk:
        await guest.run(f"echo lm75 0x48 > {device}/new_device")
        seen = await refusal(sdk, "is used by the kernel driver lm75")
        (command,) = [part for part in seen.split("`") if part.startswith("echo ")]
        await guest.run(command.replace("sudo ", ""))  # as the error suggests
        record_recovery("I2C address owned by a kernel driver", await recovery(sdk), seen=seen)
        await guest.run(f"echo 0x48 > {device}/delete_device")


async def test_permission_is_denied(guest: Guest, adapter: Adapter, record_recovery: Record) -> None:
    await guest.run(f"chown root:root {adapter.bus}; chmod 600 {adapter.bus}")
    async with guest.server(thermometers(t=adapter.bus), user=USER[0]) as server, server.sdk() as sdk:
        seen = await refusal(sdk, f"{adapter.bus}: Permission denied: add the user to group i2c")
        await guest.run(f"chmod 666 {adapter.bus}")  # manually: there is no event for it
        record_recovery("I2C node without permission", await recovery(sdk), seen=seen)


async def test_the_adapters_module_is_removed_and_reloaded(
    guest: Guest, adapter: Adapter, record_recovery: Record
) -> None:
    async with guest.server(thermometers(t="tiny-usb")) as server, server.sdk() as sdk:
        assert await celsius(sdk) == 21.5
        await guest.run("rmmod i2c-tiny-usb")  # refused while a program has the node open
        await server.wait_log("t\t.*unhealthy")
        seen = await refusal(sdk, "no I2C adapter is called")
        await guest.run("modprobe i2c-tiny-usb")
        record_recovery("kernel module of the I2C adapter removed and back", await recovery(sdk), seen=seen)


async def test_the_module_of_the_device_nodes_is_removed_and_reloaded(
    guest: Guest, adapter: Adapter, record_recovery: Record
) -> None:
    async with guest.server(thermometers(t="tiny-usb")) as server, server.sdk() as sdk:
        assert await celsius(sdk) == 21.5
        await guest.run("rmmod i2c-dev")
        seen = await refusal(sdk, "load the driver of these nodes: `sudo modprobe i2c-dev`")
        await guest.run("modprobe i2c-dev")
        record_recovery("kernel module i2c-dev removed and back", await recovery(sdk), seen=seen)


async def test_scanning_lists_present_chips_and_kernel_drivers(guest: Guest, adapter: Adapter) -> None:
    await adapter.attach(0x50, "models.chips.at24:At24Target")
    await adapter.attach(0x76, LM75)
    device = f"/sys/bus/i2c/devices/{adapter.bus.removeprefix('/dev/')}"
    await guest.run(f"echo lm75 0x48 > {device}/new_device")
    async with using(guest, adapter.bus) as (user, _):
        assert await user.ask("scan") == {"found": [0x48, 0x50, 0x76]}
    await guest.run(f"echo 0x48 > {device}/delete_device")


async def test_a_stub_with_smbus_calls_only(guest: Guest) -> None:
    await guest.run("modprobe i2c-stub chip_addr=0x48,0x20")
    try:
        number = (await guest.run("i2cdetect -l | grep -i stub | cut -f1")).stdout.strip().removeprefix("i2c-")
        await guest.run(f"i2cset -y {number} 0x48 0 0x8015 w")
        async with guest.server(thermometers(t="SMBus stub driver")) as server, server.sdk() as sdk:
            assert await celsius(sdk) == 21.5
            await guest.run(f"i2cset -y {number} 0x48 0 0x00f6 w")
            with trio.fail_after(LIMIT):
                while await celsius(sdk) != -10.0:
                    pass
        async with using(guest, "stub") as (user, _):
            assert await user.ask("scan") == {"found": [0x20, 0x48]}
            assert (await user.ask("0x48 x00 2"))["read"] == ["f600"]
            await user.ask("0x20 x10aabbccdd")
            assert (await user.ask("0x20 x10 4"))["read"] == ["aabbccdd"]
            assert (await user.ask("0x20 x11"))["read"] == []
            assert (await user.ask("0x20 1"))["read"] == ["bb"]
            assert (await user.ask("0x21 x00 2"))["fault"] == "no acknowledge"
            refused = await user.ask("0x20 x0010 4")
            assert refused["fault"] == "unsupported"
            assert "supports only SMBus calls, and none of them can write 2 and then read 4 bytes" in refused["error"]
    finally:
        await guest.run("rmmod i2c-stub")


@pytest.mark.qemu("the I2C controller of QEMU's chipset, i801")
async def test_the_chipsets_own_controller_with_smbus_calls_only(guest: Guest) -> None:
    async with using(guest, "I801") as (user, name):
        found = (await user.ask("scan"))["found"]
        assert 0x50 in found  # memory modules have their description there
        listed = (await guest.run(f"i2cdetect -y {name.removeprefix('i2c-')}")).stdout
        assert found == [int(word, 16) for line in listed.splitlines()[1:] for word in line[4:].split() if word != "--"]
        spd = (await user.ask("0x50 x00 16"))["read"][0]
        single = [(await user.ask(f"0x50 x{place:02x} 1"))["read"][0] for place in range(16)]
        assert spd == "".join(single)
        assert (await user.ask("0x51 x00 1" if 0x51 not in found else "0x2f x00 1"))["fault"] == "no acknowledge"


async def test_an_ambiguous_adapter_name_is_refused(guest: Guest, adapter: Adapter, other: Adapter) -> None:
    async with guest.server(thermometers(t="tiny-usb")) as server, server.sdk() as sdk:
        seen = await refusal(sdk, "several I2C adapters are called 'tiny-usb'")
        assert adapter.bus.removeprefix("/dev/") in seen
        assert other.bus.removeprefix("/dev/") in seen
