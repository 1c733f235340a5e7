"""Raw USB devices through libusb and the kernel: transfers, identity, kernel drivers that are detached, faults."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio
from viam.components.generic import GenericClient

from tests.hil.image.contents import USER
from tests.hil.rig import calls
from tests.hil.rig.calls import LIMIT, User, talking
from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Cable, Plant
from tests.hil.rig.sdk import Sdk

Record = Callable[..., None]


def meter(name: str = "meter", **attributes: str) -> dict[str, Any]:
    """Return the configuration of a machine with the raw device of the plant."""
    attributes = {"vendor_id": "1209", "product_id": "0001", "encoding": "latin-1", **attributes}
    return {"components": [{"name": name, "api": "rdk:component:generic", "model": "usb", "attributes": attributes}]}


async def echo(plant: Plant, serial: str = "E1") -> Cable:
    endpoints = {"1": "bulk", "129": "bulk"}
    return await plant.usb("tests.hil.guest.devices:Echo", name="Echo", serial=serial, endpoints=endpoints)


async def command(sdk: Sdk, **what: Any) -> dict[str, Any]:
    """Run a command; unlike `Generic.from_robot`, also if the resource was not ready when the SDK connected."""
    answer: dict[str, Any] = dict(await sdk(GenericClient("meter", sdk.robot._channel).do_command(what)))
    return answer


async def refusal(sdk: Sdk, words: str) -> str:
    """Repeat a call until it fails with `words` in its message; return the message."""
    return await calls.refusal(lambda: command(sdk, info=True), words)


async def there_and_back(sdk: Sdk) -> None:
    await command(sdk, bulk_write={"endpoint": 1, "data": "hello"})
    assert (await command(sdk, bulk_read={"endpoint": 0x81, "length": 64}))["data"] == "hello"


async def recovery(sdk: Sdk) -> float:
    """Repeat a transfer until it succeeds; return the seconds that took."""
    return await calls.recovery(lambda: there_and_back(sdk))


USE = """
import json, sys, trio
from hal.errors import HalError
from hal.linux.usb.device import open_usb
from hal.ports.usb import UsbIdentity

def say(**what):
    print(json.dumps(what), flush=True)

async def main():
    vendor, product, serial = sys.argv[1:4]
    identity = UsbIdentity(int(vendor, 16), int(product, 16), serial)
    try:
        async with open_usb(identity) as device, trio.open_nursery() as nursery:
            async def lost():
                try:
                    await device.lost()
                except HalError as error:
                    say(lost=str(error))

            async def carry_out(words):
                begin = trio.current_time()
                try:
                    match words:
                        case ["lost"]:
                            nursery.start_soon(lost)
                            say(waiting=True)
                        case ["read", endpoint, limit]:
                            with trio.move_on_after(float(limit)):
                                data = await device.read(int(endpoint, 0), 64)
                                say(data=data.decode(), seconds=trio.current_time() - begin)
                                return
                            say(cancelled=True, seconds=trio.current_time() - begin)
                        case ["write", endpoint, text]:
                            await device.write(int(endpoint, 0), text.encode())
                            say(written=text, seconds=trio.current_time() - begin)
                        case ["in", request, value, length]:
                            read = await device.control_in(0xC0, int(request), int(value), 0, int(length))
                            say(data=read.decode())
                except HalError as error:
                    say(fault=error.fault.value, error=str(error), seconds=trio.current_time() - begin)

            say(open=str(device.identity))
            rest = b""
            async for part in trio.lowlevel.FdStream(0):
                *lines, rest = (rest + part).split(b"\\n")
                for line in lines:
                    await carry_out(line.decode().split())
            nursery.cancel_scope.cancel()
    except HalError as error:
        say(fault=error.fault.value, error=str(error))

trio.run(main)
"""
"""Open a device and run commands from its input: `read 0x81 1.0`, `write 1 text`, `in 1 0 4`, `lost`."""


@asynccontextmanager
async def using(guest: Guest, *identity: str, user: str = "") -> AsyncIterator[tuple[User, dict[str, Any]]]:
    async with talking(guest, USE, *identity, "", user=user) as program:
        yield program, await program.hear()


async def test_transfers_of_all_kinds_through_the_machine(guest: Guest, plant: Plant) -> None:
    cable = await echo(plant)
    async with guest.server(meter()) as server, server.sdk() as sdk:
        assert (await command(sdk, info=True))["serial_number"] == "E1"
        setup = {"request_type": 0x40, "request": 2, "value": 5}
        assert await command(sdk, control_out={**setup, "data": "abc"}) == {"written": 3}
        setup = {"request_type": 0xC0, "request": 1, "value": 5, "length": 3}
        assert await command(sdk, control_in=setup) == {"data": "abc"}
        await recovery(sdk)  # a bulk transfer in each direction
        assert await cable.get("stalled") is False


async def test_a_cancelled_read_loses_nothing(guest: Guest, plant: Plant) -> None:
    await echo(plant)
    async with using(guest, "1209", "1", "E1") as (user, said):
        assert said["open"].startswith("USB 1209:0001 serial E1 at ")
        for number in range(20):
            assert (await user.ask("read 0x81 0.03"))["cancelled"]
            assert (await user.ask(f"write 1 text{number}"))["written"]
            assert (await user.ask("read 0x81 30"))["data"] == f"text{number}"


async def test_refused_requests_and_missing_endpoints(guest: Guest, plant: Plant) -> None:
    await echo(plant)
    async with using(guest, "1209", "1") as (user, _):
        refused = await user.ask("in 9 0 1")
        assert refused["fault"] == "unsupported"
        assert "rejects request 0x09" in refused["error"]
        assert "has no endpoint 0x84: it has 0x01, 0x81" in (await user.ask("read 0x84 1"))["error"]
        assert "data" in await user.ask("in 1 0 4")


async def test_a_hanging_device(guest: Guest, plant: Plant) -> None:
    cable = await echo(plant)
    async with using(guest, "1209", "1") as (user, _):
        await cable.stall()
        hung = await user.ask("in 1 0 4")
        assert hung["fault"] == "timeout"
        print(f"given up after {hung['seconds']:.2f} s: {hung['error']}")
        await cable.stall(False)
        assert "data" in await user.ask("in 1 0 4")


async def test_unplugged_while_reading_and_while_idle(guest: Guest, plant: Plant, record_recovery: Record) -> None:
    cable = await echo(plant)
    async with using(guest, "1209", "1") as (user, said):
        assert await user.ask("lost") == {"waiting": True}
        await user.tell("read 0x81 30")
        await cable.unplug()
        heard = [await user.hear(), await user.hear()]
        assert {"lost": f"{said['open']}: the device is gone: plug the device in again"} in heard
        (read,) = [one for one in heard if "fault" in one]
        assert read["fault"] == "gone"
    await cable.plug()
    async with guest.server(meter()) as server, server.sdk() as sdk:
        await recovery(sdk)
        begin = time.monotonic()
        await cable.unplug()
        await server.wait_log("meter\t.*unhealthy")
        print(f"noticed in {time.monotonic() - begin:.2f} s, with nobody asking")
        seen = await refusal(sdk, "is not plugged in")
        await cable.plug()
        record_recovery("USB device unplugged and back", await recovery(sdk), seen=seen)


async def test_a_device_with_another_serial_number_is_another_device(
    guest: Guest, plant: Plant, record_recovery: Record
) -> None:
    cable = await echo(plant)
    async with guest.server(meter(serial_number="E1")) as server, server.sdk() as sdk:
        await recovery(sdk)
        await cable.unplug()
        await cable.plug("E2")
        seen = await refusal(sdk, "serial E1 is not plugged in; there are: serial E2 at ")
        await cable.unplug()
        await cable.plug("E1")
        record_recovery(
            "USB device swapped for one with another serial number, and back", await recovery(sdk), seen=seen
        )


async def test_two_identical_devices_are_ambiguous(guest: Guest, plant: Plant) -> None:
    await echo(plant, "E1")
    await echo(plant, "E2")
    async with using(guest, "1209", "1") as (_, said):
        assert said["fault"] == "unsupported"
        assert "serial E1 at " in said["error"]
        assert "serial E2 at " in said["error"]
    async with using(guest, "1209", "1", "E2") as (user, said):
        assert "serial E2" in said["open"]
        assert (await user.ask("write 1 x"))["written"] == "x"


async def test_permission_is_denied(guest: Guest, plant: Plant, record_recovery: Record) -> None:
    await echo(plant)
    node = (await guest.run("lsusb -d 1209:0001 | sed -E 's|Bus (...) Device (...).*|/dev/bus/usb/\\1/\\2|'")).stdout
    node = node.strip()
    await guest.run(f"chown root:root {node}; chmod 600 {node}")
    async with guest.server(meter(), user=USER[0]) as server, server.sdk() as sdk:
        seen = await refusal(sdk, f"({node}): Access denied (insufficient permissions): install the rules")
        await guest.run(f"chmod 666 {node}")  # manually: there is no event for it
        record_recovery("USB device without permission", await recovery(sdk), seen=seen)


async def test_an_interface_used_by_another_program_is_busy(guest: Guest, plant: Plant) -> None:
    await echo(plant)
    async with using(guest, "1209", "1") as (first, _):
        assert (await first.ask("write 1 mine"))["written"]
        async with using(guest, "1209", "1") as (second, _):
            refused = await second.ask("write 1 no")
            assert refused["fault"] == "busy"
            assert "another program" in refused["error"]
    async with using(guest, "1209", "1") as (user, _):
        assert (await user.ask("write 1 now"))["written"]


async def test_a_kernel_driver_is_detached_and_reattached(guest: Guest) -> None:
    cable = await guest.usb.serial("RIG0001")
    node = (await guest.run(f"readlink -f {cable.by_id}")).stdout.strip()
    async with using(guest, "0403", "6001", "RIG0001") as (user, said):
        assert "serial RIG0001" in said["open"]
        assert (await guest.run(f"ls {node}")).returncode == 0  # the driver is not detached before it is necessary
        assert (await user.ask("write 2 hello"))["written"]  # the FT232's endpoint to the line
        assert (await guest.run(f"ls {node}", check=False)).returncode != 0
        with trio.fail_after(LIMIT):
            assert await cable.far.receive_some() == b"hello"
    with trio.fail_after(LIMIT):
        while (await guest.run(f"ls {cable.by_id}", check=False)).returncode:
            pass
