"""Sensor `serial_line`: in memory in virtual time, and on pseudoterminals of the kernel."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from hal.errors import Fault, HalError
from hal.linux.hardware import LinuxHardware
from hal.sim.serial import serial_line
from models.devices.serial_line.attributes import SerialLineConfig
from schema.errors import ErrorKind, MachineError
from tests.unit.models.builtin.support import Bench

BY_ID = "usb-FTDI_FT232R_HIL0001-if00-port0"
PATH = f"/dev/serial/by-id/{BY_ID}"


async def test_the_last_complete_line_is_the_reading(bench: Bench, autojump_clock: object) -> None:
    port = bench.hardware.plug_serial("/dev/ttyUSB0", BY_ID, in_memory=True)
    sensor = await bench.add("sensor", "it", {"path": PATH, "baud": 9600}, model="serial_line")
    assert port.settings is not None
    assert port.settings.baud == 9600
    with pytest.raises(MachineError, match="no complete line") as caught:
        await sensor.get_readings()
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    await port.far.send_all(b'lf of a line\n{"old": 1}\n{"t": 21')
    await wait_all_tasks_blocked()
    assert (await sensor.get_readings())["old"] == 1
    await trio.sleep(3)
    assert (await sensor.get_readings())["age_s"] == 3
    await port.far.send_all(b'.5}\r\n{"part":')
    await wait_all_tasks_blocked()
    assert await sensor.get_readings() == {"t": 21.5, "age_s": 0}
    await port.far.send_all(b"garbage\n")
    await wait_all_tasks_blocked()
    with pytest.raises(MachineError, match="not JSON"):
        await sensor.get_readings()
    assert await sensor.get_status() == {"lines": 3, "dropped_lines": 0}
    await port.far.send_all(b"[" * 3000 + b"\n")
    await wait_all_tasks_blocked()
    with pytest.raises(MachineError, match="not JSON"):
        await sensor.get_readings()


async def test_the_first_line_counts_if_so_configured(bench: Bench, autojump_clock: object) -> None:
    port = bench.hardware.plug_serial("/dev/ttyS0", in_memory=True)
    attributes = {"path": "/dev/ttyS0", "parser": "number", "skip_first": False}
    sensor = await bench.add("sensor", "it", attributes, model="serial_line")
    await port.far.send_all(b"5\n")
    await wait_all_tasks_blocked()
    assert (await sensor.get_readings())["value"] == 5


async def test_an_old_line_is_an_error_if_configured(bench: Bench, autojump_clock: object) -> None:
    port = bench.hardware.plug_serial("/dev/ttyS0", in_memory=True)
    attributes = {"path": "/dev/ttyS0", "parser": "csv", "columns": ["a", "b"], "max_age_s": 60.0}
    sensor = await bench.add("sensor", "it", attributes, model="serial_line")
    await port.far.send_all(b"\n1,2\n")
    await wait_all_tasks_blocked()
    await trio.sleep(60)
    assert (await sensor.get_readings())["b"] == 2
    await trio.sleep(1)
    with pytest.raises(MachineError, match="old"):
        await sensor.get_readings()


async def test_a_line_that_an_unplugging_cut_is_never_a_reading(autojump_clock: object) -> None:
    """The start of the line is lost with the connection; its rest is dropped after reconnecting."""
    attributes = {"path": PATH, "parser": "number"}
    async with trio.open_nursery() as nursery:
        bench = Bench(nursery)
        port = bench.hardware.plug_serial("/dev/ttyUSB0", BY_ID, in_memory=True)

        async def until_unplugged() -> None:
            async with trio.open_nursery() as inner:
                first = Bench(inner)
                first.hardware = bench.hardware
                sensor = await first.add("sensor", "it", attributes, model="serial_line")
                await port.far.send_all(b"\n1\n2.")
                await wait_all_tasks_blocked()
                assert (await sensor.get_readings())["value"] == 1
                port.unplug()

        with pytest.raises(BaseExceptionGroup) as caught:
            await until_unplugged()
        (error,) = caught.value.exceptions
        assert isinstance(error, HalError)
        assert error.fault is Fault.GONE
        port.plug("/dev/ttyUSB1")
        sensor = await bench.add("sensor", "it", attributes, model="serial_line")
        await port.far.send_all(b"5\n")
        await wait_all_tasks_blocked()
        with pytest.raises(MachineError, match="no complete line"):
            await sensor.get_readings()
        await port.far.send_all(b"3\n")
        await wait_all_tasks_blocked()
        assert (await sensor.get_readings())["value"] == 3
        nursery.cancel_scope.cancel()


async def test_two_resources_on_one_port_are_both_named(bench: Bench, autojump_clock: object) -> None:
    bench.hardware.plug_serial("/dev/ttyS0", in_memory=True)
    await bench.add("sensor", "first", {"path": "/dev/ttyS0"}, model="serial_line")
    names = "second and already used by rdk:component:sensor/first"

    async def add() -> None:
        async with trio.open_nursery() as nursery:
            other = Bench(nursery)
            other.hardware = bench.hardware
            await other.add("sensor", "second", {"path": "/dev/ttyS0"}, model="serial_line")

    with pytest.raises(BaseExceptionGroup) as caught:
        await add()
    (error,) = caught.value.exceptions
    assert isinstance(error, HalError)
    assert (error.fault, names in str(error)) == (Fault.BUSY, True)


async def test_on_a_pty_of_the_kernel(bench: Bench) -> None:
    bench.hardware = LinuxHardware()  # type: ignore[assignment]  # the other family behind the same ports
    with serial_line() as line:
        sensor = await bench.add("sensor", "it", {"path": line.path}, model="serial_line")
        await line.far.send_all(b'cut\n{"t": 1}\n{"t": ')
        await line.far.send_all(b'2}\n{"t"')
        while (await sensor.get_status())["lines"] < 2:
            await wait_all_tasks_blocked()
        assert (await sensor.get_readings())["t"] == 2
        await bench.remove(sensor)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({}, "either path"),
        ({"path": "/dev/ttyS0", "vendor_id": "0403"}, "either path"),
        ({"vendor_id": "xyz"}, "four hexadecimal digits such as 0403"),
        ({"product_id": "12345"}, "four hexadecimal digits"),
        ({"path": "/dev/ttyS0", "interface": 1}, "interface"),
        ({"path": "/dev/ttyS0", "parser": "regex", "pattern": "("}, "regular expression"),
    ],
)
def test_wrong_attributes_are_refused_in_words(attributes: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SerialLineConfig(**attributes)  # type: ignore[arg-type]


def test_a_port_is_named_by_identity() -> None:
    config = SerialLineConfig(vendor_id="0x0403", product_id="6001", serial_number="HIL0001", interface=1)
    assert str(config.port()) == "USB 0403:6001 serial HIL0001 interface 1"
