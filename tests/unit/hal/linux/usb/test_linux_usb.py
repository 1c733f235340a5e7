"""USB devices through pyusb on a fake libusb, with real threads and real time."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from hal.errors import Fault, HalError
from hal.linux.usb import device as linux_usb
from hal.linux.usb.device import LinuxUsbDevice, open_usb
from hal.linux.usb.listing import find_plugged, plugged
from hal.ports.usb import UsbDevice, UsbIdentity
from tests.unit.hal.linux.usb.usb_fakes import BULK_IN, BULK_OUT, INTERRUPT_IN, Instrument, UsbTree

METER = UsbIdentity(0x1209, 0x0001)


@pytest.fixture
def tree(tmp_path: Path) -> UsbTree:
    return UsbTree(tmp_path)


def opened(tree: UsbTree, identity: UsbIdentity = METER):  # type: ignore[no-untyped-def]
    return open_usb(identity, backend=tree.backend, sys=tree.sys, dev=tree.dev)


async def until(instrument: Instrument, line: str) -> None:
    while line not in instrument.log:
        await wait_all_tasks_blocked(0.001)


async def test_the_identity_of_what_was_found_is_complete(tree: UsbTree) -> None:
    tree.plug("1-1.4", "A1")
    async with opened(tree) as device:
        port: UsbDevice = device
        assert port.identity == UsbIdentity(0x1209, 0x0001, "A1", "1-1.4")


async def test_among_several_the_serial_number_or_the_port_decides(tree: UsbTree) -> None:
    first, second = tree.plug("1-1", "A1", address=4), tree.plug("1-2", "A2", address=5)
    for identity, meant in (
        (UsbIdentity(0x1209, 1, serial="A2"), second),
        (UsbIdentity(0x1209, 1, port="1-1"), first),
        (UsbIdentity(0x1209, 1, "A2", "1-2"), second),
    ):
        async with opened(tree, identity) as device:
            await device.write(BULK_OUT, b"x")
        assert meant.taken == b"x"
        meant.taken.clear()


@pytest.mark.parametrize(
    ("identity", "fault", "words"),
    [
        (METER, Fault.UNSUPPORTED, "several devices match USB 1209:0001: serial A1 at 1-1, serial (none) at 1-2"),
        (UsbIdentity(0x1209, 1, "B"), Fault.GONE, "serial B is not plugged in; there are: serial A1 at 1-1, serial"),
        (UsbIdentity(0x1209, 1, "A1", "1-2"), Fault.GONE, "at 1-2 is not plugged in"),
        (UsbIdentity(0x16C0, 1), Fault.GONE, "USB 16c0:0001 is not plugged in: plug it in"),
    ],
)
def test_an_ambiguous_or_missing_device_lists_the_present_ones(
    tree: UsbTree, identity: UsbIdentity, fault: Fault, words: str
) -> None:
    tree.plug("1-1", "A1", address=4)
    tree.plug("1-2", address=5)
    with pytest.raises(HalError) as caught:
        find_plugged(identity, tree.sys)
    assert caught.value.fault is fault
    assert words in str(caught.value)


def test_all_devices_with_their_titles(tree: UsbTree) -> None:
    tree.plug("1-2", "A1")
    tree.plug("1-1", vendor="16c0", address=5)
    assert [str(device) for device in plugged(tree.sys)] == [
        "USB 16c0:0001 at 1-1 (Acme Meter)",
        "USB 1209:0001 serial A1 at 1-2 (Acme Meter)",
    ]


async def test_control_transfers_both_ways(tree: UsbTree) -> None:
    instrument = tree.plug("1-1")
    instrument.answers[0x20] = b"version 1"
    async with opened(tree) as device:
        assert await device.control_in(0xC0, 0x20, 1, 2, 64) == b"version 1"
        assert await device.control_in(0xC0, 0x20, 1, 2, 4) == b"vers"
        await device.control_out(0x40, 0x21, 3, 4, b"data")
        await device.control_out(0x40, 0x22, 5, 6)
    assert instrument.requests == [(0xC0, 0x20, 1, 2)] * 2 + [(0x40, 0x21, 3, 4), (0x40, 0x22, 5, 6)]
    assert instrument.taken == b"data"
    assert "claim 0" not in instrument.log


async def test_a_control_transfer_to_an_interface_claims_it(tree: UsbTree) -> None:
    instrument = tree.plug("1-1")
    async with opened(tree) as device:
        await device.control_out(0x21, 0x0A, 0, 1)
        assert "claim 1" in instrument.log


@pytest.mark.parametrize(("number", "fault"), [(errno.EPIPE, Fault.UNSUPPORTED), (errno.ETIMEDOUT, Fault.TIMEOUT)])
async def test_a_control_transfer_that_is_refused_or_not_answered(tree: UsbTree, number: int, fault: Fault) -> None:
    tree.plug("1-1").answers[0x20] = number
    async with opened(tree) as device:
        with pytest.raises(HalError) as caught:
            await device.control_in(0xC0, 0x20, 0, 0, 8)
        assert caught.value.fault is fault


async def test_a_read_waits_for_data(tree: UsbTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux_usb, "SLICE", 5)
    instrument = tree.plug("1-1")
    async with opened(tree) as device, trio.open_nursery() as nursery:
        got: list[bytes] = []

        async def read() -> None:
            got.append(await device.read(BULK_IN, 64))

        nursery.start_soon(read)
        while instrument.reads < 3:
            await wait_all_tasks_blocked(0.001)
        assert got == []
        instrument.sends.put(b"data")
    assert got == [b"data"]


async def test_a_read_that_is_cancelled_loses_nothing(tree: UsbTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux_usb, "SLICE", 40_000)
    instrument = tree.plug("1-1")
    async with opened(tree) as device:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(device.read, BULK_IN, 64)
                await until(instrument, "claim 0")
                await wait_all_tasks_blocked(0.01)
                scope.cancel()
        assert scope.cancelled_caught
        instrument.sends.put(b"came into the slice of the cancelled one")
        with trio.fail_after(20):  # the read takes the data at once, without another time slice
            assert await device.read(BULK_IN, 64) == b"came into the slice of the cancelled one"


async def test_at_most_as_much_as_was_asked_for_and_the_rest_next(tree: UsbTree) -> None:
    instrument = tree.plug("1-1")
    async with opened(tree) as device:
        instrument.sends.put(b"0123456789")
        instrument.sends.put(b"next")
        assert await device.read(BULK_IN, 4) == b"0123"
        assert await device.read(BULK_IN, 64) == b"456789"
        assert await device.read(INTERRUPT_IN, 64) == b"next"
        assert "claim 1" in instrument.log


async def test_an_empty_packet_is_not_data(tree: UsbTree) -> None:
    instrument = tree.plug("1-1")
    async with opened(tree) as device:
        instrument.sends.put(b"")
        instrument.sends.put(b"data")
        assert await device.read(BULK_IN, 64) == b"data"


async def test_a_write_is_not_delayed_by_a_read_that_waits(tree: UsbTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux_usb, "SLICE", 40_000)
    instrument = tree.plug("1-1")
    async with opened(tree) as device, trio.open_nursery() as nursery:
        nursery.start_soon(device.read, BULK_IN, 64)
        await until(instrument, "claim 0")
        await wait_all_tasks_blocked(0.01)
        with trio.fail_after(20):
            await device.write(BULK_OUT, b"question")
        assert instrument.taken == b"question"
        instrument.sends.put(b"answer")


async def test_a_write_goes_on_until_everything_is_taken(tree: UsbTree) -> None:
    instrument = tree.plug("1-1")
    data = os.urandom(100_000)
    async with opened(tree) as device:
        instrument.takes = [0, 64, 0, 0, 128]
        await device.write(BULK_OUT, data)
        assert bytes(instrument.taken) == data
        instrument.taken.clear()
        await device.write(BULK_OUT, b"")
        assert instrument.taken == b""


async def test_a_write_that_the_device_does_not_accept_can_be_cancelled(tree: UsbTree) -> None:
    instrument = tree.plug("1-1")
    async with opened(tree) as device:
        instrument.takes = [0] * 1_000_000
        with trio.move_on_after(0.05) as scope:
            await device.write(BULK_OUT, b"x")
        assert scope.cancelled_caught


async def test_the_kernels_driver_is_detached_and_attached_again(tree: UsbTree) -> None:
    instrument = tree.plug("1-1")
    instrument.drivers[0] = "ftdi_sio"
    async with opened(tree) as device:
        assert instrument.log == []  # no interface is claimed before it is needed
        await device.write(BULK_OUT, b"x")
        await device.write(BULK_OUT, b"x")
        assert instrument.log == ["detach ftdi_sio", "claim 0"]
    assert instrument.log == ["detach ftdi_sio", "claim 0", "release 0", "attach 0", "close"]


async def test_leaving_by_cancellation_gives_back_too_and_no_thread_is_left(tree: UsbTree) -> None:
    instrument = tree.plug("1-1")
    instrument.drivers[0] = "cdc_acm"
    async with trio.open_nursery() as nursery:

        async def use() -> None:
            async with opened(tree) as device:
                await device.read(BULK_IN, 64)

        nursery.start_soon(use)
        await until(instrument, "claim 0")
        nursery.cancel_scope.cancel()
    assert instrument.log[-3:] == ["release 0", "attach 0", "close"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("usb ")]


@pytest.mark.parametrize(("driver", "words"), [("usbhid", "the kernel driver usbhid"), ("usbfs", "another program")])
async def test_an_interface_claimed_by_another_program_is_busy(tree: UsbTree, driver: str, words: str) -> None:
    instrument = tree.plug("1-1")
    tree.bind("1-1", driver)
    instrument.fail["claim"] = errno.EBUSY
    async with opened(tree) as device:
        with pytest.raises(HalError, match=words) as caught:
            await device.write(BULK_OUT, b"x")
        assert caught.value.fault is Fault.BUSY
        await device.write(BULK_OUT, b"x")  # the error released the interface, so this succeeds


async def test_a_device_that_may_not_be_opened_names_node_and_remedy(tree: UsbTree) -> None:
    tree.plug("1-1").fail["open"] = errno.EACCES
    with pytest.raises(HalError, match=r"bus/usb/001/004.*: install the rules") as caught:
        async with opened(tree):
            raise AssertionError
    assert caught.value.fault is Fault.PERMISSION


async def test_an_endpoint_that_does_not_exist_is_answered_with_those_that_do(tree: UsbTree) -> None:
    tree.plug("1-1")
    async with opened(tree) as device:
        with pytest.raises(HalError, match="has no endpoint 0x84: it has 0x01, 0x81, 0x82") as caught:
            await device.read(0x84, 64)
        assert caught.value.fault is Fault.UNSUPPORTED


async def test_a_device_without_configuration_gets_its_first(tree: UsbTree) -> None:
    instrument = tree.plug("1-1")
    instrument.configured = False
    async with opened(tree):
        assert instrument.log == ["configure 1"]


async def test_a_halted_endpoint_is_set_going_again(tree: UsbTree) -> None:
    instrument = tree.plug("1-1")
    async with opened(tree) as device:
        instrument.sends.put(errno.EPIPE)
        with pytest.raises(HalError, match="halted the endpoint") as caught:
            await device.read(BULK_IN, 64)
        assert caught.value.fault is Fault.BUS
        assert "clear halt 81" in instrument.log


@pytest.mark.parametrize("number", [errno.ENODEV, errno.EIO])
async def test_an_unplugged_device_is_gone_for_readers_and_waiters(tree: UsbTree, number: int) -> None:
    instrument = tree.plug("1-1")
    results: list[Fault] = []
    async with opened(tree) as device, trio.open_nursery() as nursery:

        async def expect(device: LinuxUsbDevice, waiting: bool) -> None:
            with pytest.raises(HalError) as caught:
                await (device.lost() if waiting else device.read(BULK_IN, 64))
            results.append(caught.value.fault)

        nursery.start_soon(expect, device, True)
        nursery.start_soon(expect, device, False)
        await until(instrument, "claim 0")
        instrument.fail["release"] = errno.ENODEV
        tree.unplug("1-1", instrument)
        instrument.sends.put(number)
    assert results == [Fault.GONE, Fault.GONE]
    assert instrument.log[-1] == "close"


async def test_a_fault_of_a_device_that_is_still_there_is_not_gone(tree: UsbTree) -> None:
    instrument = tree.plug("1-1")
    async with opened(tree) as device:
        instrument.sends.put(errno.EIO)
        with pytest.raises(HalError) as caught:
            await device.read(BULK_IN, 64)
        assert caught.value.fault is Fault.BUS


async def test_without_libusb_the_package_is_named(tree: UsbTree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.plug("1-1")
    monkeypatch.setattr("usb.backend.libusb1.get_backend", lambda: None)
    with pytest.raises(HalError, match=r"sudo apt install libusb-1\.0-0") as caught:
        async with open_usb(METER, sys=tree.sys, dev=tree.dev):
            raise AssertionError
    assert caught.value.fault is Fault.UNSUPPORTED
