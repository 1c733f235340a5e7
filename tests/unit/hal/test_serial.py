"""Serial lines over ptys: both families behind the port, in real time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from hal.errors import Fault, HalError
from hal.linux.serial import open_serial, ports
from hal.ports.serial import SerialOpener, SerialSettings
from hal.sim.serial import serial_line

OPENER: SerialOpener = open_serial


async def test_bytes_go_both_ways() -> None:
    with serial_line() as line:
        async with OPENER(line.path, SerialSettings(9600, parity="even", stop_bits=2)) as port:
            await line.far.send_all(b"hello \x00\xff\r\n")
            assert await port.receive_some() == b"hello \x00\xff\r\n"
            await port.send_all(b"answer")
            assert await line.far.receive_some() == b"answer"


async def test_more_than_the_kernel_holds_is_sent_while_it_is_read() -> None:
    data = os.urandom(200_000)
    with serial_line() as line:
        async with OPENER(line.path, SerialSettings()) as port, trio.open_nursery() as nursery:
            nursery.start_soon(port.send_all, data)
            received = bytearray()
            while len(received) < len(data):
                received += await line.far.receive_some()
    assert bytes(received) == data


async def test_an_unplugged_device_is_gone_and_wakes_its_reader() -> None:
    with serial_line() as line:
        async with OPENER(line.path, SerialSettings()) as port, trio.open_nursery() as nursery:

            async def read() -> None:
                with pytest.raises(HalError) as caught:
                    await port.receive_some()
                assert caught.value.fault is Fault.GONE

            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            line.far.close()


async def test_closing_wakes_the_reader_and_is_idempotent() -> None:
    with serial_line() as line:
        port = OPENER(line.path, SerialSettings())
        async with trio.open_nursery() as nursery:

            async def read() -> None:
                with pytest.raises(trio.ClosedResourceError):
                    await port.receive_some()

            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            await port.aclose()
        await port.aclose()
        with pytest.raises(trio.ClosedResourceError):
            await port.send_all(b"x")


async def test_cancelling_a_read_loses_nothing() -> None:
    with serial_line() as line:
        async with OPENER(line.path, SerialSettings()) as port:
            with trio.CancelScope() as scope:
                scope.cancel()
                await port.receive_some()
            await line.far.send_all(b"kept")
            assert await port.receive_some() == b"kept"


async def test_a_second_opener_is_told_that_it_is_busy() -> None:
    with serial_line() as line:
        async with OPENER(line.path, SerialSettings()):
            with pytest.raises(HalError) as caught:
                OPENER(line.path, SerialSettings())
            assert caught.value.fault is Fault.BUSY
        await OPENER(line.path, SerialSettings()).aclose()


def test_a_missing_port_is_gone_and_a_file_is_no_port(tmp_path: Path) -> None:
    with pytest.raises(HalError) as caught:
        OPENER(str(tmp_path / "ttyNONE"), SerialSettings())
    assert caught.value.fault is Fault.GONE
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    with pytest.raises(HalError, match="plain"):
        OPENER(str(plain), SerialSettings())


def test_listing_ports_needs_no_directory() -> None:
    assert isinstance(ports(), list)
