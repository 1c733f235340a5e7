"""Generic `usb` on simulated hardware, in virtual time."""

from __future__ import annotations

import base64

import pytest
import trio

from hal.errors import Fault, HalError
from hal.ports.usb import UsbIdentity
from hal.sim.target import UsbTarget
from models.devices.usb.attributes import UsbConfig
from schema.errors import ErrorKind, MachineError
from tests.unit.models.builtin.support import Bench

WHO = UsbIdentity(0x1209, 0x0001, "A1", "1-2")
ENTRY = {"vendor_id": "1209", "product_id": "0x0001"}


class Echo:
    """Echo IN control requests; record OUT control requests and bulk writes."""

    def __init__(self) -> None:
        self.said: list[tuple[object, ...]] = []

    def control_in(self, request_type: int, request: int, value: int, index: int, length: int) -> bytes:
        return bytes([request_type, request, value & 0xFF, value >> 8, index])[:length]

    def control_out(self, request_type: int, request: int, value: int, index: int, data: bytes) -> None:
        self.said.append((request_type, request, value, index, data))

    def write(self, endpoint: int, data: bytes) -> None:
        self.said.append((endpoint, data))


TARGET: type[UsbTarget] = Echo


async def test_transfers(bench: Bench, autojump_clock: object) -> None:
    target = Echo()
    device = bench.hardware.plug_usb(WHO, target)
    usb = await bench.add("generic", "it", ENTRY, model="usb")
    answer = await usb.do_command(
        {"control_in": {"request_type": "0xc0", "request": 1.0, "value": 0x1234, "index": 2, "length": 5}}
    )
    assert base64.b64decode(answer["data"]) == bytes([0xC0, 1, 0x34, 0x12, 2])
    out = {"request_type": 0x40, "request": 9, "data": "hi"}
    assert await usb.do_command({"control_out": out, "encoding": "utf-8"}) == {"written": 2}
    assert await usb.do_command({"bulk_write": {"endpoint": 1, "data": b"raw"}}) == {"written": 3}
    assert target.said == [(0x40, 9, 0, 0, b"hi"), (1, b"raw")]
    device.push(0x81, b"\x00\xff")
    assert await usb.do_command({"bulk_read": {"endpoint": 0x81, "length": 64}}) == {"data": "AP8="}
    assert await usb.do_command({"info": True}) == {
        "vendor_id": "1209",
        "product_id": "0001",
        "serial_number": "A1",
        "port": "1-2",
    }


async def test_a_device_that_does_not_answer_is_a_timeout_and_nothing_is_lost(
    bench: Bench, autojump_clock: object
) -> None:
    device = bench.hardware.plug_usb(WHO, Echo())
    usb = await bench.add("generic", "it", ENTRY, model="usb")
    read = {"bulk_read": {"endpoint": 0x81, "length": 8}, "timeout_s": 2}
    start = trio.current_time()
    with pytest.raises(MachineError, match="not answered bulk_read within 2 s") as caught:
        await usb.do_command(read)
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert trio.current_time() - start == 2
    device.push(0x81, b"late")
    assert await usb.do_command({**read, "encoding": "latin-1"}) == {"data": "late"}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ({}, "one transfer"),
        ({"info": True, "bulk_read": {}}, "one transfer"),
        ({"bulk_raed": {}}, "did you mean bulk_read"),
        ({"bulk_read": 5}, "use an object"),
        ({"bulk_read": {"endpoint": 1, "length": 8}}, "endpoint is 1: use a whole number from 129 to 143"),
        ({"bulk_write": {"endpoint": 1, "data": "no base64!"}}, "base64 text"),
        ({"bulk_write": {"endpoint": 1}}, "data is None"),
        ({"control_in": {"request_type": 0x40, "request": 1, "length": 1}}, "request_type is 64"),
        ({"control_in": {"request_type": 0xC0, "request": 1.5, "length": 1}}, r"request is 1\.5"),
        ({"control_in": {"request_type": 0xC0, "request": 1}}, "length is None"),
        ({"control_out": {"request_type": 0x40, "request": 1, "lenght": 1}}, "no command 'lenght'"),
        ({"info": True, "timeout_s": 0}, "seconds above 0"),
        ({"info": True, "encoding": "hex"}, "use one of utf-8"),
    ],
)
async def test_wrong_commands_are_refused_in_words(
    bench: Bench, autojump_clock: object, command: dict[str, object], words: str
) -> None:
    target = Echo()
    bench.hardware.plug_usb(WHO, target)
    usb = await bench.add("generic", "it", ENTRY, model="usb")
    with pytest.raises(MachineError, match=words) as caught:
        await usb.do_command(command)
    assert caught.value.kind is ErrorKind.INVALID
    assert not target.said


async def test_unplugging_is_a_failure(autojump_clock: object) -> None:
    async def until_lost() -> None:
        async with trio.open_nursery() as nursery:
            bench = Bench(nursery)
            device = bench.hardware.plug_usb(WHO, Echo())
            await bench.add("generic", "it", {**ENTRY, "serial_number": "A1"}, model="usb")
            device.unplug()

    with pytest.raises(BaseExceptionGroup) as caught:
        await until_lost()
    (error,) = caught.value.exceptions
    assert isinstance(error, HalError)
    assert error.fault is Fault.GONE


async def test_another_serial_number_is_not_taken(bench: Bench, autojump_clock: object) -> None:
    bench.hardware.plug_usb(WHO, Echo())
    with pytest.raises(HalError, match="serial B2"):
        async with bench.hardware.usb(UsbConfig(vendor_id="1209", product_id="1", serial_number="B2").identity()):
            raise AssertionError


def test_both_numbers_are_needed() -> None:
    with pytest.raises(ValueError, match="four hexadecimal digits"):
        UsbConfig(vendor_id="", product_id="0001")
