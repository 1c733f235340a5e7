"""Simulated serial ports, USB devices and hot-plugging."""

from __future__ import annotations

import os

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from hal.errors import Fault, HalError
from hal.ports.digital import Line, OutputSettings
from hal.ports.hotplug import HotplugEvent
from hal.ports.serial import SerialSettings
from hal.ports.spi import SpiSettings
from hal.ports.usb import UsbIdentity
from hal.sim import World
from hal.sim.faults import FaultPlan
from hal.sim.hardware import SimHardware
from hal.sim.hotplug import BUFFER
from hal.sim.i2c import SimI2cBus
from hal.sim.serial_port import SimSerialPort
from hal.sim.target import Stall
from hal.sim.usb import SimUsbDevice

BY_ID = "/dev/serial/by-id/usb-Acme-if00"
SETTINGS = SerialSettings(9600)


async def read_exactly(stream: trio.abc.Stream, n: int) -> bytes:
    data = b""
    while len(data) < n:
        data += await stream.receive_some()
    return data


@pytest.fixture(params=["pty", "memory"])
def port(request: pytest.FixtureRequest) -> tuple[SimHardware, SimSerialPort]:
    """Return a port on a pty or in memory: both obey one contract. Neither has the virtual clock, as a pty cannot."""
    hardware = SimHardware(World(seed=1))
    in_memory = request.param == "memory"
    return hardware, hardware.plug_serial("/dev/ttyUSB0", "usb-Acme-if00", in_memory=in_memory)


@pytest.mark.parametrize("path", ["/dev/ttyUSB0", BY_ID])
async def test_bytes_go_both_ways_under_either_name(port: tuple[SimHardware, SimSerialPort], path: str) -> None:
    hardware, plug = port
    async with hardware.serial(path, SETTINGS) as stream:
        await plug.far.send_all(b"hello")
        assert await read_exactly(stream, 5) == b"hello"
        await stream.send_all(b"\x00\r\n\xff")
        assert await read_exactly(plug.far, 4) == b"\x00\r\n\xff"
        assert plug.settings == SETTINGS
    plug.unplug()


async def test_nothing_at_that_path(port: tuple[SimHardware, SimSerialPort]) -> None:
    hardware, plug = port
    with pytest.raises(HalError, match="/dev/ttyUSB7: No such file or directory") as caught:
        hardware.serial("/dev/ttyUSB7", SETTINGS)
    assert caught.value.fault is Fault.GONE
    plug.unplug()


async def test_a_port_is_open_once(port: tuple[SimHardware, SimSerialPort]) -> None:
    hardware, plug = port
    async with hardware.serial(BY_ID, SETTINGS):
        with pytest.raises(HalError) as caught:
            hardware.serial(BY_ID, SETTINGS)
        assert caught.value.fault is Fault.BUSY
    async with hardware.serial(BY_ID, SETTINGS):
        pass
    plug.unplug()


async def test_unplugging_wakes_the_reader_and_the_stable_name_comes_back(
    port: tuple[SimHardware, SimSerialPort],
) -> None:
    hardware, plug = port
    stream = hardware.serial(BY_ID, SETTINGS)

    async def read() -> None:
        with pytest.raises(HalError) as caught:
            await stream.receive_some()
        assert caught.value.fault is Fault.GONE

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await wait_all_tasks_blocked()
            plug.unplug()
    with pytest.raises(HalError) as caught:
        hardware.serial(BY_ID, SETTINGS)
    assert caught.value.fault is Fault.GONE
    with pytest.raises(HalError):
        await plug.far.send_all(b"x")
    await stream.aclose()
    plug.plug("/dev/ttyUSB1")
    async with hardware.serial(BY_ID, SETTINGS) as again:
        await plug.far.send_all(b"again")
        assert await read_exactly(again, 5) == b"again"
    with pytest.raises(HalError):
        hardware.serial("/dev/ttyUSB0", SETTINGS)
    plug.unplug()


async def test_closing_wakes_the_reader(port: tuple[SimHardware, SimSerialPort]) -> None:
    hardware, plug = port
    stream = hardware.serial(BY_ID, SETTINGS)

    async def read() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await stream.receive_some()

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await wait_all_tasks_blocked()
            await stream.aclose()
    plug.unplug()


async def test_wrong_bits_and_denied_permission(port: tuple[SimHardware, SimSerialPort]) -> None:
    hardware, plug = port
    async with hardware.serial(BY_ID, SETTINGS) as stream:
        with hardware.faults.injected("/dev/ttyUSB0", FaultPlan(bit_errors=1.0)):
            await plug.far.send_all(bytes(16))
        assert [byte.bit_count() for byte in await read_exactly(stream, 16)] == [1] * 16
    with hardware.faults.injected("/dev/ttyUSB0", FaultPlan(Fault.PERMISSION)):
        with pytest.raises(HalError, match="group dialout") as caught:
            hardware.serial(BY_ID, SETTINGS)
    assert caught.value.fault is Fault.PERMISSION
    plug.unplug()


async def test_another_program_opens_the_pty() -> None:
    hardware = SimHardware(World())
    plug = hardware.plug_serial("/dev/ttyACM0")
    fd = os.open(plug.terminal, os.O_RDWR | os.O_NOCTTY)
    os.write(fd, b"hi")
    assert await read_exactly(plug.far, 2) == b"hi"
    os.close(fd)
    plug.unplug()


async def test_memory_needs_no_real_clock(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    plug = hardware.plug_serial("/dev/ttyS0", in_memory=True)
    with pytest.raises(HalError):
        _ = plug.terminal
    hardware.faults.inject("/dev/ttyS0", FaultPlan(delay=60.0))
    async with hardware.serial("/dev/ttyS0", SETTINGS) as stream:
        begin = trio.current_time()
        await plug.far.send_all(b"late")
        assert await stream.receive_some() == b"late"
        assert trio.current_time() - begin == 60.0


class Lamp:
    """A lamp: request 1 switches it, request 2 reads its state, and others are refused."""

    def __init__(self) -> None:
        self.on = 0
        self.written: list[tuple[int, bytes]] = []

    def control_in(self, request_type: int, request: int, value: int, index: int, length: int) -> bytes:
        if request != 2:
            raise Stall
        return bytes([self.on, 0, 0])

    def control_out(self, request_type: int, request: int, value: int, index: int, data: bytes) -> None:
        if request != 1:
            raise Stall
        self.on = value

    def write(self, endpoint: int, data: bytes) -> None:
        if endpoint != 0x02:
            raise Stall
        self.written.append((endpoint, data))


FIRST = UsbIdentity(0x1209, 1, "A", "1-1")
TWO = UsbIdentity(0x1209, 1, "B", "1-2")


async def test_usb_transfers(autojump_clock: MockClock) -> None:
    hardware, lamp = SimHardware(World()), Lamp()
    plug = hardware.plug_usb(FIRST, lamp)
    async with hardware.usb(UsbIdentity(0x1209, 1)) as device:
        assert device.identity == FIRST
        await device.control_out(0x40, 1, 7, 0)
        assert await device.control_in(0xC0, 2, 0, 0, 1) == b"\x07"
        for refused in (device.control_in(0xC0, 9, 0, 0, 1), device.control_out(0x40, 9, 0, 0)):
            with pytest.raises(HalError, match="serial A at 1-1 rejects request 0x09") as caught:
                await refused
            assert caught.value.fault is Fault.UNSUPPORTED
        await device.write(0x02, b"abc")
        assert lamp.written == [(0x02, b"abc")]
        with pytest.raises(HalError, match="halted the endpoint") as caught:
            await device.write(0x03, b"abc")
        assert caught.value.fault is Fault.BUS
        plug.push(0x81, b"12345")
        assert [await device.read(0x81, 3), await device.read(0x81, 3)] == [b"123", b"45"]
        with trio.move_on_after(1) as waited:
            await device.read(0x81, 3)
        assert waited.cancelled_caught
        with pytest.raises(HalError, match="is used by"):
            await hardware.usb(FIRST).__aenter__()


async def test_usb_identity_decides(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    first, _ = hardware.plug_usb(FIRST, Lamp()), hardware.plug_usb(TWO, Lamp())
    with pytest.raises(HalError, match=r"serial A.* or .*serial B"):
        hardware.usb(UsbIdentity(0x1209, 1))
    async with hardware.usb(UsbIdentity(0x1209, 1, serial="B")) as device:
        assert device.identity == TWO
    async with hardware.usb(UsbIdentity(0x1209, 1, port="1-1")) as device:
        assert device.identity == FIRST
    first.unplug()
    with pytest.raises(HalError, match="serial A is not plugged in; there is USB 1209:0001 serial B") as caught:
        hardware.usb(UsbIdentity(0x1209, 1, serial="A"))
    assert caught.value.fault is Fault.GONE


async def test_usb_unplugged_during_a_read(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    plug = hardware.plug_usb(FIRST, Lamp())
    async with hardware.usb(FIRST) as device, trio.open_nursery() as nursery:
        for wait in (lambda: device.read(0x81, 1), device.lost):

            async def gone(wait: object = wait) -> None:
                with pytest.raises(HalError) as caught:
                    await wait()  # type: ignore[operator]
                assert caught.value.fault is Fault.GONE

            nursery.start_soon(gone)
        await wait_all_tasks_blocked()
        plug.unplug()
    plug.plug()
    async with hardware.usb(FIRST) as device:
        await device.control_out(0x40, 1, 1, 0)


async def test_hotplug_tells_of_everything(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    async with hardware.hotplug() as events:
        port = hardware.plug_serial("/dev/ttyUSB0", "usb-Acme-if00", in_memory=True)
        port.unplug()
        hardware.bus("3").unplug()
        hardware.bus("3").plug()
        hardware.plug_usb(FIRST, Lamp())
        listener = aiter(events)
        seen: list[HotplugEvent] = [await anext(listener) for _ in range(5)]
        assert [(event.action, event.subsystem, event.node) for event in seen] == [
            ("add", "tty", "/dev/ttyUSB0"),
            ("remove", "tty", "/dev/ttyUSB0"),
            ("remove", "i2c-dev", "/dev/i2c-3"),
            ("add", "i2c-dev", "/dev/i2c-3"),
            ("add", "usb", ""),
        ]
        assert seen[0].properties == {"DEVLINKS": BY_ID}


async def test_a_slow_listener_hears_that_events_were_lost(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    async with hardware.hotplug() as events:
        listener = aiter(events)
        for _ in range(BUFFER):
            hardware.bus("3").unplug()
            hardware.bus("3").plug()
        assert (await anext(listener)).action == "lost"
        hardware.bus("3").unplug()
        assert (await anext(listener)).action == "remove"


async def test_ticks_are_steady_and_count_what_was_missed(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    begin = trio.current_time()
    async with hardware.ticks(0.1) as ticks:
        beats = aiter(ticks)
        assert await anext(beats) == 1
        await trio.sleep(0.05)
        assert await anext(beats) == 1
        assert trio.current_time() - begin == pytest.approx(0.2)
        await trio.sleep(0.35)
        assert await anext(beats) == 3
        assert await anext(beats) == 1
        assert trio.current_time() - begin == pytest.approx(0.6)
    with pytest.raises(ValueError, match="a period of 0 s"):
        await hardware.ticks(0).__aenter__()


async def test_everything_is_plugged_by_name(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    port = hardware.plug_serial("/dev/ttyUSB0", "usb-Acme-if00", in_memory=True)
    usb = hardware.plug_usb(FIRST, Lamp())
    bus, spi = hardware.bus("1"), hardware.spi_bus("0")
    hardware.pin(Line("chip", 3))
    things: list[tuple[SimI2cBus | SimUsbDevice | SimSerialPort, list[str]]] = [
        (bus, ["i2c-1", "/dev/i2c-1"]),
        (usb, ["1-1", str(FIRST)]),
        (port, ["/dev/ttyUSB0", BY_ID]),
    ]
    for thing, names in things:
        for name in names:
            hardware.set_plugged(name, False)
            assert not thing.plugged
            hardware.set_plugged(name, True)
            assert thing.plugged
    port.unplug()
    port.plug("/dev/ttyUSB5")
    hardware.set_plugged("/dev/ttyUSB0", False)  # the port keeps its first name
    assert not port.plugged
    hardware.set_plugged("spidev0", False)
    with pytest.raises(HalError):
        spi.check(0)
    hardware.set_plugged("chip", False)
    with pytest.raises(HalError):
        hardware.lines.check(Line("chip", 3))
    with pytest.raises(ValueError, match="no device 'chop'"):
        hardware.set_plugged("chop", False)


async def test_without_power_no_bytes_arrive(autojump_clock: MockClock) -> None:
    hardware = SimHardware(World())
    line = Line("chip", 3)

    class Deaf:
        def write(self, data: bytes) -> None:
            raise AssertionError("heard something")

        def read(self, n: int) -> bytes:
            raise AssertionError("was asked something")

        def transfer(self, data: bytes) -> bytes:
            raise AssertionError("heard something")

    hardware.bus("1").attach(0x48, Deaf())
    hardware.spi_bus("0").attach(0, Deaf())
    async with (
        hardware.digital_output(line, OutputSettings(safe=True)) as output,
        hardware.pwm(Line("chip", 4)) as wave,
        hardware.i2c("1") as bus,
        hardware.spi("0", 0, SpiSettings()) as device,
    ):
        hardware.power_off()
        output.write(True)
        wave.set_wave(1.0, 100.0)
        assert hardware.pin(line).drive is None
        assert hardware.pin(Line("chip", 4)).drive is None
        for use in (bus.transaction(0x48, b""), device.transfer(b"x")):
            with pytest.raises(HalError) as caught:
                await use
            assert caught.value.fault is Fault.BUS
    assert hardware.pin(line).drive is None
    hardware.power_on()
    assert hardware.lines.outputs() == []
    async with hardware.digital_output(line, OutputSettings(safe=True)) as output:
        assert output.read()
