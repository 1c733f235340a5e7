"""Generic `serial_port` on simulated hardware, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from engine.components.generic import Generic
from hal.errors import Fault, HalError
from hal.ports.serial import SerialIdentity
from hal.sim.serial_port import SimSerialPort
from schema.errors import ErrorKind, MachineError
from tests.unit.models.builtin.support import Bench


async def port_on(bench: Bench, **attributes: object) -> tuple[Generic, SimSerialPort]:
    device = bench.hardware.plug_serial("/dev/ttyS0", in_memory=True)
    port: Generic = await bench.add("generic", "it", {"path": "/dev/ttyS0", **attributes}, model="serial_port")
    return port, device


async def test_a_question_and_its_answer(bench: Bench, autojump_clock: object) -> None:
    port, device = await port_on(bench)

    async def modem() -> None:
        assert await device.far.receive_some() == b"AT\r\n"
        await trio.sleep(1)
        await device.far.send_all(b"\r\nO")
        await trio.sleep(1)
        await device.far.send_all(b"K\r\n")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(modem)
        assert await port.do_command({"write": "AT\r\n", "until": "OK\r\n"}) == {"written": 4, "data": "\r\nOK\r\n"}


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ({"read_line": True}, {"line": "one"}),
        ({"read": 5}, {"data": "one\r\n"}),
        ({"read": 2.0}, {"data": "on"}),
        ({"until": "w"}, {"data": "one\r\ntw"}),
        ({"until": "ZQ==", "encoding": "base64"}, {"data": "b25l"}),
        ({"available": True}, {"data": "one\r\ntwo\n\ufffd"}),
        ({"available": True, "encoding": "latin-1"}, {"data": "one\r\ntwo\n\xff"}),
        ({"clear": True, "available": True}, {"data": ""}),
        ({"clear": True}, {}),
        ({"write": b"\x00\x01"}, {"written": 2}),
        ({"write": "AAE=", "encoding": "base64"}, {"written": 2}),
    ],
)
async def test_received_bytes_are_read_in_the_requested_form(
    bench: Bench, autojump_clock: object, command: dict[str, Any], answer: dict[str, Any]
) -> None:
    port, device = await port_on(bench)
    await device.far.send_all(b"one\r\ntwo\n\xff")
    await wait_all_tasks_blocked()
    assert await port.do_command(command) == answer
    if "write" in command:
        assert await device.far.receive_some() == b"\x00\x01"


async def test_a_timeout_leaves_what_has_arrived(bench: Bench, autojump_clock: object) -> None:
    port, device = await port_on(bench)
    await device.far.send_all(b"half")
    start = trio.current_time()
    with pytest.raises(MachineError, match="did not answer within 2 s; 4 received bytes are waiting") as caught:
        await port.do_command({"read_line": True, "timeout_s": 2})
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert trio.current_time() - start == 2
    await device.far.send_all(b" a line\n")
    assert await port.do_command({"read_line": True}) == {"line": "half a line"}


async def test_the_buffer_is_bounded_and_counts_what_it_lost(bench: Bench, autojump_clock: object) -> None:
    port, device = await port_on(bench, buffer_bytes=256)
    await device.far.send_all(b"x" * 300 + b"end\n")
    await wait_all_tasks_blocked()
    assert await port.get_status() == {
        "bytes_received": 304,
        "bytes_written": 0,
        "bytes_waiting": 256,
        "bytes_lost": 48,
    }
    assert (await port.do_command({"read_line": True}))["line"] == "x" * 252 + "end"


async def test_an_ending_is_found_though_the_buffer_overflows_while_it_is_waited_for(
    bench: Bench, autojump_clock: object
) -> None:
    port, device = await port_on(bench, buffer_bytes=256)
    answers: list[dict[str, Any]] = []

    async def ask() -> None:
        answers.append(dict(await port.do_command({"until": "ENDING"})))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        for piece in (b"x" * 250, b"y" * 100 + b"END", b"ING" + b"z" * 100):
            await device.far.send_all(piece)
            await wait_all_tasks_blocked()
    assert answers[0]["data"].endswith("yENDING")
    assert (await port.get_status())["bytes_waiting"] == 100


async def test_commands_take_turns(bench: Bench, autojump_clock: object) -> None:
    port, device = await port_on(bench)
    answers: list[str] = []

    async def ask(question: str) -> None:
        answers.append((await port.do_command({"write": question, "read_line": True}))["line"])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, "1")
        nursery.start_soon(ask, "2")
        for _ in range(2):
            question = await device.far.receive_some()
            assert len(question) == 1
            await trio.sleep(1)
            await device.far.send_all(question + b"\n")
    assert sorted(answers) == ["1", "2"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ({}, "has none of write, read and clear"),
        ({"timeout_s": 1}, "has none of write, read and clear"),
        ({"wriet": "x"}, "did you mean write"),
        ({"read": 0}, "whole number from 1 to 65536"),
        ({"read": "many"}, "whole number"),
        ({"read": 1, "read_line": True}, "use one of them"),
        ({"until": ""}, "until is empty"),
        ({"write": 5}, "write is 5: use text"),
        ({"write": "\u20ac", "encoding": "latin-1"}, "latin-1 text"),
        ({"write": "x", "timeout_s": -1}, "seconds above 0"),
        ({"write": "x", "encoding": "ebcdic"}, "use one of utf-8, latin-1, base64"),
    ],
)
async def test_wrong_commands_are_refused_in_words(
    bench: Bench, autojump_clock: object, command: dict[str, Any], words: str
) -> None:
    port, _ = await port_on(bench)
    with pytest.raises(MachineError, match=words) as caught:
        await port.do_command(command)
    assert caught.value.kind is ErrorKind.INVALID
    assert (await port.get_status())["bytes_written"] == 0


async def test_an_unplugged_device_ends_the_command_and_the_driver(autojump_clock: object) -> None:
    async def until_lost() -> None:
        async with trio.open_nursery() as nursery:
            _, device = await port_on(Bench(nursery))
            await wait_all_tasks_blocked()
            device.unplug()

    with pytest.raises(BaseExceptionGroup) as caught:
        await until_lost()
    (error,) = caught.value.exceptions
    assert isinstance(error, HalError)
    assert error.fault is Fault.GONE


async def test_a_port_by_identity(bench: Bench, autojump_clock: object) -> None:
    for number, serial in enumerate(("A1", "B2")):
        identity = SerialIdentity(0x0403, 0x6001, serial, 0)
        bench.hardware.plug_serial(f"/dev/ttyUSB{number}", identity=identity, in_memory=True)
    attributes = {"vendor_id": "0403", "product_id": "6001", "serial_number": "B2"}
    port = await bench.add("generic", "it", attributes, model="serial_port")
    assert await port.do_command({"write": "x"}) == {"written": 1}
    with pytest.raises(HalError, match="2 serial ports match USB 0403:any"):
        bench.hardware.serial(SerialIdentity(0x0403), port.attributes.settings())
    with pytest.raises(HalError, match=r"no serial port belongs to .* serial C3; there are /dev/ttyUSB0") as caught:
        bench.hardware.serial(SerialIdentity(serial="C3"), port.attributes.settings())
    assert caught.value.fault is Fault.GONE
