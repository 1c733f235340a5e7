"""Serial devices in the guest: an FTDI cable that is unplugged and plugged in, an ACM gadget, a satellite receiver."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from viam.components.generic import Generic
from viam.components.movement_sensor import MovementSensor
from viam.components.sensor import Sensor
from viam.errors import ResourceNotFoundError

from hal.nmea import sentence
from rpc.api.client import ApiClient
from tests.hil.rig.guest import Guest
from tests.hil.rig.record import Recorder
from tests.hil.rig.sdk import Sdk
from tests.hil.rig.server import Server
from tests.hil.rig.usb import SerialCable

LIMIT = 60.0  # seconds for each wait; the guest's processor is emulated
SENSOR = "rdk:component:sensor"


def component(name: str, api: str, model: str, /, **attributes: object) -> dict[str, Any]:
    return {"name": name, "api": f"rdk:component:{api}", "model": model, "attributes": attributes}


@asynccontextmanager
async def machine(guest: Guest, *components: dict[str, Any], **how: Any) -> AsyncIterator[tuple[Server, Sdk]]:
    async with guest.server({"components": [*components]}, **how) as server, server.sdk() as sdk:
        yield server, sdk


async def first_good(attempt: Callable[[], Awaitable[Any]]) -> Any:
    """Repeat `attempt` until it succeeds; return its result."""
    with trio.fail_after(LIMIT):
        while True:
            try:
                return await attempt()
            except Exception as error:  # any exception of the SDK
                last = error
            try:
                await trio.sleep(0.02)
            except trio.Cancelled:
                print(f"the last refusal: {last}")
                raise


async def refusal(attempt: Callable[[], Awaitable[Any]], words: str) -> str:
    """Repeat a call until it fails with `words` in its message; return the message."""
    with trio.fail_after(LIMIT):
        while True:
            try:
                await attempt()
            except Exception as error:  # any exception of the SDK
                if words in (said := getattr(error, "message", None) or str(error)):
                    return said
            await trio.sleep(0.02)


async def found(sdk: Sdk, kind: type[Any], name: str) -> Any:
    """Return the client of a resource, even if it became ready after the SDK's last list of resources."""
    try:
        return kind.from_robot(sdk.robot, name)
    except ResourceNotFoundError:
        await sdk(sdk.robot.refresh())
        return kind.from_robot(sdk.robot, name)


def readings(sdk: Sdk, name: str) -> Callable[[], Awaitable[Any]]:
    async def read() -> Any:
        return await sdk((await found(sdk, Sensor, name)).get_readings())

    return read


def value_after(cable: SerialCable, line: bytes, sdk: Sdk, name: str) -> Callable[[], Awaitable[Any]]:
    """Return a function that sends a line, then reads it: the device sends repeatedly, as a sensor does."""
    read = readings(sdk, name)

    async def attempt() -> Any:
        await cable.far.send_all(line)
        return await read()

    return attempt


HOLD = """
import os, signal, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
print(os.path.realpath(sys.argv[1]), flush=True)
signal.pause()
"""


async def test_a_line_sensor_survives_unplugging_in_the_middle_of_a_line(
    guest: Guest, record_recovery: Recorder
) -> None:
    cable = await guest.usb.serial()
    holder = await guest.start(["python3", "-c", HOLD, cable.by_id])
    await holder.wait_output("/dev/tty")
    node = holder.stdout.strip()
    entry = component("by_path", "sensor", "serial_line", path=cable.by_id, parser="number", baud=9600)
    async with machine(guest, entry) as (_, sdk):
        await cable.far.send_all(b"9.9\n1.5\n")
        assert (await first_good(readings(sdk, "by_path")))["value"] == 1.5

        await cable.far.send_all(b"2.")  # and then it is unplugged
        await cable.unplug()
        seen = await refusal(readings(sdk, "by_path"), "")
        start = time.monotonic()
        await cable.plug()
        assert (await guest.run(["readlink", "-f", cable.by_id])).stdout.strip() != node  # the old number is in use
        await cable.far.send_all(b"5\n")  # the other half of the line
        assert (await first_good(value_after(cable, b"3.5\n", sdk, "by_path")))["value"] == 3.5
        record_recovery("serial device unplugged in the middle of a line and back", time.monotonic() - start, seen=seen)


async def test_a_device_with_another_serial_number_is_not_confused(guest: Guest, record_recovery: Recorder) -> None:
    cable = await guest.usb.serial("RIG0001")
    identity = {"vendor_id": "0403", "product_id": "6001", "serial_number": "RIG0001"}
    async with machine(
        guest,
        component("by_path", "sensor", "serial_line", path=cable.by_id, parser="number"),
        component("by_identity", "sensor", "serial_line", parser="number", **identity),
    ) as (server, sdk):
        # One of the two opens the port, the other is refused.
        await server.wait_log("is already open: end the program that uses it, or remove the other resource")
        await cable.far.send_all(b"\n1\n")
        values: list[float] = []
        with trio.fail_after(30):
            while not values:  # the line may not have been read yet
                for name in ("by_path", "by_identity"):
                    with contextlib.suppress(Exception):
                        values.append((await readings(sdk, name)())["value"])
        assert values == [1]
    async with machine(guest, component("it", "sensor", "serial_line", parser="number", **identity)) as (server, sdk):
        await cable.far.send_all(b"\n1\n")
        assert (await first_good(readings(sdk, "it")))["value"] == 1
        await cable.unplug()
        await cable.plug("RIG0002")
        await server.wait_log(r"no serial port belongs to USB 0403:6001 serial RIG0001; there are [^\n]*RIG0002")
        for _ in range(5):
            await cable.far.send_all(b"\n666\n")
            await refusal(readings(sdk, "it"), "")
        await cable.unplug()
        start = time.monotonic()
        await cable.plug("RIG0001")
        assert (await first_good(value_after(cable, b"\n2\n", sdk, "it")))["value"] == 2
        record_recovery(
            "serial device swapped for one with another serial number, and back",
            time.monotonic() - start,
            seen="no serial port belongs to USB 0403:6001 serial RIG0001; there are ...",
        )


async def test_permission_is_explained(guest: Guest, record_recovery: Recorder) -> None:
    cable = await guest.usb.serial()
    entry = component("it", "sensor", "serial_line", path=cable.by_id, parser="number")
    async with machine(guest, entry, user="hil") as (server, sdk):
        await server.wait_log("Permission denied: add the user to group dialout")
        await refusal(readings(sdk, "it"), "")
        start = time.monotonic()
        await guest.run(f"chown hil $(readlink -f {cable.by_id}); udevadm trigger -c change -n {cable.by_id}")
        assert (await first_good(value_after(cable, b"\n2\n", sdk, "it")))["value"] == 2
        record_recovery(
            "permission to a serial port missing, then given",
            time.monotonic() - start,
            seen="Permission denied: add the user to group dialout",
        )


async def test_a_raw_port_sends_and_receives(guest: Guest) -> None:
    cable = await guest.usb.serial()
    node = (await guest.run(["readlink", "-f", cable.by_id])).stdout.strip()
    async with machine(guest, component("it", "generic", "serial_port", path=node, baud=250000)) as (server, sdk):
        await server.wait_log(f"the path depends on the order in which devices are plugged in.*use {cable.by_id}")
        generic = Generic.from_robot(sdk.robot, "it")

        async def instrument() -> None:
            assert await cable.far.receive_some() == b"*IDN?\n"
            await cable.far.send_all(b"RIG,1,2,3\r\n")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(instrument)
            answer = await sdk(generic.do_command({"write": "*IDN?\n", "read_line": True, "timeout_s": 30}))
        assert answer == {"written": 6, "line": "RIG,1,2,3"}
        with pytest.raises(Exception, match=r"did not answer within 0\.2 s"):
            await sdk(generic.do_command({"read": 1, "timeout_s": 0.2}))
        await cable.far.send_all(bytes(range(256)))
        answer = await sdk(generic.do_command({"read": 256, "encoding": "latin-1", "timeout_s": 30}))
        assert answer["data"].encode("latin-1") == bytes(range(256))


GADGET = """
modprobe dummy_hcd; modprobe libcomposite; modprobe usb_f_acm
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
G=/sys/kernel/config/usb_gadget/acm; mkdir -p $G/strings/0x409 $G/configs/c.1 $G/functions/acm.0
cd $G; echo 0x1d6b > idVendor; echo 0x0104 > idProduct; echo ACM0001 > strings/0x409/serialnumber
echo Rig > strings/0x409/manufacturer; echo Instrument > strings/0x409/product
ln -sf functions/acm.0 configs/c.1/ 2>/dev/null; ls /sys/class/udc | head -1 > UDC
"""
ECHO = """
import os, tty
fd = os.open("/dev/ttyGS0", os.O_RDWR | os.O_NOCTTY)
tty.setraw(fd)
print("ready", flush=True)
while data := os.read(fd, 4096):
    os.write(fd, data.upper())
"""
UDC = "/sys/kernel/config/usb_gadget/acm/UDC"
ACM_BY_ID = "/dev/serial/by-id/usb-Rig_Instrument_ACM0001-if00"
ACM = component("it", "generic", "serial_port", vendor_id="1d6b", product_id="0104", serial_number="ACM0001")


@pytest.fixture
async def gadget(guest: Guest) -> AsyncIterator[None]:
    """Plug in an instrument that has USB itself."""
    await guest.run(GADGET)
    await guest.run(["udevadm", "wait", ACM_BY_ID])
    yield
    with trio.CancelScope(shield=True, deadline=trio.current_time() + 30):
        await guest.run(f"echo > {UDC}", check=False)


async def test_an_instrument_with_its_own_usb_interface(guest: Guest, gadget: None, record_recovery: Recorder) -> None:
    """cdc_acm, without a cable's chip: Arduino, Pico, most receivers."""
    instrument = await guest.start(["python3", "-c", ECHO])
    await instrument.wait_output("ready")
    async with machine(guest, ACM) as (_, sdk):
        generic = Generic.from_robot(sdk.robot, "it")

        async def ask() -> Any:
            return await sdk(generic.do_command({"write": "hello\n", "read_line": True, "timeout_s": 5}))

        assert await first_good(ask) == {"written": 6, "line": "HELLO"}
        await instrument.stop()
        await guest.run(f"echo > {UDC}")
        seen = await refusal(ask, "plug the device in")
        start = time.monotonic()
        await guest.run(f"ls /sys/class/udc | head -1 > {UDC}")
        instrument = await guest.start(["python3", "-c", ECHO])
        await instrument.wait_output("ready")
        assert (await first_good(ask))["line"] == "HELLO"
        record_recovery("ACM device unplugged and back", time.monotonic() - start, seen=seen)


OTHER = component("other", "sensor", "fake")


async def hold_the_wire(client: ApiClient) -> str:
    """Write until the device, which does not read, accepts no more data."""

    async def write() -> Any:
        return await client.call(
            "rdk:component:generic", "it", "do_command", command={"write": "x" * 50_000, "timeout_s": 2}
        )

    return await refusal(write, "does not accept data")


async def test_a_blocked_serial_line_does_not_delay_the_stop(guest: Guest, gadget: None) -> None:
    """The kernel would wait 30 s for it when the port is closed."""
    async with guest.server({"components": [ACM, OTHER]}) as server, server.client() as client:
        await hold_the_wire(client)
        start = time.monotonic()
        await server.write({"components": [OTHER]})
        await server.wait_log("generic/it.*removed")
        await client.call(SENSOR, "other", "get_readings")
        assert await server.stop() == 0
        print(f"closed and stopped in {time.monotonic() - start:.2f} s")
        assert time.monotonic() - start < 30


async def test_a_blocked_serial_line_without_permission_to_shorten_the_wait(guest: Guest, gadget: None) -> None:
    """Without permission to change the wait, the port is closed in the background, and everything else continues."""
    await guest.run(f"chown hil $(readlink -f {ACM_BY_ID})")
    async with guest.server({"components": [ACM, OTHER]}, user="hil") as server, server.client() as client:
        await hold_the_wire(client)
        await server.write({"components": [OTHER]})
        slowest, end = 0.0, time.monotonic() + 5
        while time.monotonic() < end:
            start = time.monotonic()
            with trio.fail_after(LIMIT):
                await client.call(SENSOR, "other", "get_readings")
            slowest = max(slowest, time.monotonic() - start)
        print(f"the slowest call while the port is being closed: {slowest:.3f} s")
        assert slowest < 25, "it waited for the port"
        await guest.run(f"echo > {UDC}")  # frees the wire


async def test_a_gps_receiver(guest: Guest, record_recovery: Recorder) -> None:
    cable = await guest.usb.serial("GPS0001")
    entry = component("gps", "movement_sensor", "gps-nmea", path=cable.by_id, max_age_s=20)
    fix = (
        sentence("GNGGA,092725.00,4717.11399,N,00833.91590,E,4,12,0.61,499.6,M,48.0,M,1.0,0000")
        + sentence("GNRMC,092725.00,A,4717.11399,N,00833.91590,E,10.000,90.00,091202,,,R,V")
        + sentence("GNGSA,A,3,23,29,07,08,09,18,26,28,,,,,1.94,0.61,1.54,1")
        + sentence("GPGSV,1,1,09,09,,,17,10,,,40,12,,,49,13,,,35,1")
        + sentence("GNGST,092725.00,1.8,,,,0.017,0.013,0.022")
    )
    async with machine(guest, entry) as (_, sdk):
        gps = MovementSensor.from_robot(sdk.robot, "gps")

        async def position() -> Any:
            await cable.far.send_all(b"\xb5\x62\x01\x07garbage" + fix)
            return await sdk(gps.get_position())

        await cable.far.send_all(sentence("GNGGA,,,,,,0,00,99.99,,,,,,"))
        await refusal(lambda: sdk(gps.get_position()), "no fix")
        point, altitude = await first_good(position)
        assert point.latitude == pytest.approx(47 + 17.11399 / 60)
        assert point.longitude == pytest.approx(8 + 33.91590 / 60)
        assert altitude == pytest.approx(499.6, abs=1e-3)
        assert await sdk(gps.get_compass_heading()) == 90
        assert (await sdk(gps.get_linear_velocity())).x == pytest.approx(10 * 1852 / 3600)
        accuracy = await sdk(gps.get_accuracy())
        assert (accuracy.position_nmea_gga_fix, accuracy.accuracy["altitude_m"]) == (4, pytest.approx(0.022))
        told = await sdk(gps.get_readings())
        assert (told["satellites_used"], told["satellites_in_view"], told["fix"]) == (12, 9, "RTK")
        await cable.unplug()
        seen = await refusal(lambda: sdk(gps.get_position()), "")
        start = time.monotonic()
        await cable.plug()
        await first_good(position)
        record_recovery("GPS receiver unplugged and back", time.monotonic() - start, seen=seen)
