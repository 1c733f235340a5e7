"""I2C buses over files like the kernel's: sharing, names, errors and unplugging. Uses real threads and real time."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from hal.errors import Fault, HalError
from hal.inventory.i2c_scan import scan
from hal.linux.i2c import bus as i2c
from hal.ports.i2c import I2cBus
from tests.unit.hal.linux.i2c.i2c_fakes import Kernel, PlainAdapter, StubAdapter, error, failure, kernel

__all__ = ["kernel"]


async def test_a_register_is_read_in_one_transaction_with_a_repeated_start(kernel: Kernel) -> None:
    adapter = PlainAdapter(0x48)
    kernel.plug(1, "bcm2835 (i2c@7e804000)", adapter)
    async with kernel.buses.open("1") as bus:
        port: I2cBus = bus
        assert await port.transaction(0x48, b"\x05", 3) == [b"\x05\x06\x07"]
    assert adapter.transfers == [[(0x48, 0, b"\x05"), (0x48, 1, b"")]]


async def test_several_steps_give_what_was_read_one_item_for_each_number(kernel: Kernel) -> None:
    kernel.plug(1, "bcm2835", PlainAdapter(0x48))
    async with kernel.buses.open("1") as bus:
        assert await bus.transaction(0x48, b"\x01", 2, b"\x09", 1) == [b"\x01\x02", b"\x09"]
        assert await bus.transaction(0x48, b"\x10\xaa\xbb") == []
        assert await bus.transaction(0x48, b"\x10", 2) == [b"\xaa\xbb"]


async def test_the_adapters_timeout_is_set(kernel: Kernel) -> None:
    kernel.plug(1, "bcm2835", PlainAdapter(0x48))
    async with kernel.buses.open("1"):
        pass
    assert (i2c.I2C_TIMEOUT, i2c.DEVICE_LIMIT) in kernel.requests
    assert (i2c.I2C_RETRIES, i2c.RETRIES) in kernel.requests


async def test_capabilities_are_read_once_per_plug(kernel: Kernel) -> None:
    adapter = PlainAdapter(0x48)
    kernel.plug(7, "i2c-tiny-usb", adapter)
    async with kernel.buses.open("7") as bus:
        for _ in range(3):
            await bus.transaction(0x48, 1)
        assert [request for request, _ in kernel.requests].count(i2c.I2C_FUNCS) == 1
        kernel.unplug(7)
        await failure(bus, 0x48, 1)
        kernel.plug(7, "i2c-tiny-usb", adapter)
        await bus.transaction(0x48, 1)
        assert [request for request, _ in kernel.requests].count(i2c.I2C_FUNCS) == 2


async def test_an_adapter_that_does_not_say_what_it_can_do_is_not_taken_for_one_that_can_do_nothing(
    kernel: Kernel,
) -> None:
    adapter = PlainAdapter(0x48)
    adapter.functions = 0
    kernel.plug(7, "i2c-tiny-usb", adapter)
    with pytest.raises(HalError, match="does not report its functions") as caught:
        async with kernel.buses.open("7"):
            raise AssertionError
    assert caught.value.fault is Fault.BUS


async def test_an_adapter_that_hangs_is_not_taken_for_one_that_cannot_do_it(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = PlainAdapter(0x48)
    kernel.plug(7, "i2c-tiny-usb", adapter)
    async with kernel.buses.open("7") as bus:
        adapter.fail = [error(errno.EOPNOTSUPP), error(errno.EOPNOTSUPP)]
        assert (await failure(bus, 0x48, 1)).fault is Fault.UNSUPPORTED
        monkeypatch.setattr(i2c, "PROMPT", -1.0)  # as if the adapter had taken long to fail
        hung = await failure(bus, 0x48, 1)
    assert hung.fault is Fault.TIMEOUT
    assert str(hung).startswith("i2c-7 address 0x48: the adapter does not answer: the clock or data line is held low")
    assert "switch the devices of the bus off and on" in hung.remedy


@pytest.mark.parametrize("number", [errno.EIO, errno.ETIMEDOUT, errno.EBUSY])
async def test_a_stuck_bus_comes_with_what_to_do(kernel: Kernel, number: int) -> None:
    """Errors of a stuck bus: i2c-bcm2835 EIO and ETIMEDOUT, i2c-i801 EBUSY and ETIMEDOUT, i2c-gpio ETIMEDOUT."""
    adapter = PlainAdapter(0x48)
    kernel.plug(1, "bcm2835", adapter)
    async with kernel.buses.open("1") as bus:
        adapter.fail = [error(number)]
        assert "switch the devices of the bus off and on" in (await failure(bus, 0x48, 1)).remedy


async def test_between_transactions_nothing_is_held(kernel: Kernel) -> None:
    kernel.plug(1, "bcm2835", PlainAdapter(0x48))
    async with kernel.buses.open("1") as bus:
        assert kernel.open_nodes() == []
        await bus.transaction(0x48, 1)
        assert kernel.open_nodes() == []
        await failure(bus, 0x50, 1)
        assert kernel.open_nodes() == []


async def test_all_names_of_an_adapter_mean_one_bus_and_the_last_user_closes_it(kernel: Kernel, tmp_path: Path) -> None:
    kernel.plug(1, "bcm2835 (i2c@7e804000)", PlainAdapter(0x48))
    link = tmp_path / "sensors"
    link.symlink_to(kernel.dev / "i2c-1")
    async with kernel.buses.open("1") as first:
        for name in ("1", "i2c-1", str(kernel.dev / "i2c-1"), str(link), "bcm2835 (i2c@7e804000)", "BCM2835"):
            async with kernel.buses.open(name) as again:
                assert again is first
                assert again.name == "i2c-1"
        assert await first.transaction(0x48, 1) == [b"\x00"]
    assert not [thread for thread in threading.enumerate() if thread.name == "i2c-1"]


async def test_users_that_open_at_the_same_moment_by_other_names_share_too(kernel: Kernel) -> None:
    kernel.plug(1, "bcm2835", PlainAdapter(0x48))
    seen: list[I2cBus] = []
    async with trio.open_nursery() as nursery:

        async def use(name: str) -> None:
            async with kernel.buses.open(name) as bus:
                seen.append(bus)
                await trio.sleep_forever()

        nursery.start_soon(use, "1")
        nursery.start_soon(use, "bcm2835")
        while len(seen) < 2:
            await wait_all_tasks_blocked(0.001)
        nursery.cancel_scope.cancel()
    assert seen[0] is seen[1]


async def test_two_adapters_are_two_buses(kernel: Kernel) -> None:
    kernel.plug(1, "bcm2835", PlainAdapter(0x48))
    kernel.plug(2, "i2c-tiny-usb at bus 001 device 003", PlainAdapter(0x49))
    async with kernel.buses.open("1") as first, kernel.buses.open("tiny-usb") as second:
        assert (first.name, second.name) == ("i2c-1", "i2c-2")
        assert await second.transaction(0x49, 1) == [b"\x00"]


@pytest.mark.parametrize(
    ("number", "fault"),
    [
        (errno.ENXIO, Fault.NO_ACKNOWLEDGE),
        (errno.EREMOTEIO, Fault.NO_ACKNOWLEDGE),
        (errno.ENODEV, Fault.NO_ACKNOWLEDGE),
        (errno.ETIMEDOUT, Fault.TIMEOUT),
        (errno.EIO, Fault.BUS),
        (errno.EAGAIN, Fault.BUS),
        (errno.EBUSY, Fault.BUS),
        (errno.EBADMSG, Fault.BUS),
        (errno.EPROTO, Fault.BUS),
        (errno.EOPNOTSUPP, Fault.UNSUPPORTED),
        (errno.EINVAL, Fault.UNSUPPORTED),
    ],
)
async def test_kernel_errors_map_to_faults(kernel: Kernel, number: int, fault: Fault) -> None:
    adapter = PlainAdapter(0x48)
    kernel.plug(1, "bcm2835", adapter)
    async with kernel.buses.open("1") as bus:
        adapter.fail.append(error(number))
        result = await failure(bus, 0x48, 1)
        assert result.fault is fault
        assert str(result).startswith("i2c-1 address 0x48: ")
        assert isinstance(result.__cause__, OSError)
        assert result.__cause__.errno == number
        assert await bus.transaction(0x48, 1) == [b"\x00"]


async def test_an_address_that_a_kernel_driver_has_is_busy_and_the_driver_is_named(kernel: Kernel) -> None:
    adapter = PlainAdapter(0x48)
    kernel.plug(1, "bcm2835", adapter)
    kernel.bind(1, 0x48, "lm75")
    async with kernel.buses.open("1") as bus:
        result = await failure(bus, 0x48, b"\x00", 2)
        assert result.fault is Fault.BUSY
        assert "is used by the kernel driver lm75" in str(result)
        assert "echo 1-0048 | sudo tee /sys/bus/i2c/drivers/lm75/unbind" in str(result)
        assert adapter.transfers == []


async def test_a_node_that_may_not_be_opened_names_the_group(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel.plug(1, "bcm2835", PlainAdapter(0x48))

    def refuse(path: object, flags: int) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr("hal.linux.i2c.bus.os.open", refuse)
    with pytest.raises(HalError, match=r"dev/i2c-1: Permission denied: add the user to group i2c") as caught:
        async with kernel.buses.open("1"):
            raise AssertionError
    assert caught.value.fault is Fault.PERMISSION


@pytest.mark.parametrize("address", [-1, 0x80, 0x90])
async def test_an_address_of_eight_bits_is_refused(kernel: Kernel, address: int) -> None:
    kernel.plug(1, "bcm2835", PlainAdapter(0x48))
    async with kernel.buses.open("1") as bus:
        result = await failure(bus, address, 1)
        assert result.fault is Fault.UNSUPPORTED
        assert "7-bit" in str(result)
        with pytest.raises(ValueError, match="at least one step"):
            await bus.transaction(0x48)


@pytest.mark.parametrize("steps", [(8193,), (bytes(8193),), (b"\x00",) * 43])
async def test_more_than_a_transaction_can_hold_is_refused(kernel: Kernel, steps: tuple[bytes | int, ...]) -> None:
    adapter = PlainAdapter(0x48)
    kernel.plug(1, "bcm2835", adapter)
    async with kernel.buses.open("1") as bus:
        result = await failure(bus, 0x48, *steps)
        assert result.fault is Fault.UNSUPPORTED
        assert "at most 42 steps of 8192 bytes" in str(result)
        assert adapter.transfers == []


async def test_an_adapter_with_smbus_calls_only_is_used_by_them(kernel: Kernel) -> None:
    adapter = StubAdapter(0x48)
    adapter.chips[0x48].words[5] = 0x3412
    kernel.plug(3, "SMBus stub driver", adapter)
    async with kernel.buses.open("stub") as bus:
        assert await bus.transaction(0x48, b"\x05", 2) == [b"\x12\x34"]
        assert (await failure(bus, 0x49, b"\x05", 2)).fault is Fault.NO_ACKNOWLEDGE
        refused = await failure(bus, 0x48, b"\x00\x10", 4)
        assert refused.fault is Fault.UNSUPPORTED
        assert str(refused).startswith(
            "i2c-3: the adapter supports only SMBus calls, and none of them can write 2 and then"
        )


async def test_a_stuck_bus_delays_only_its_own_users_and_can_be_left(kernel: Kernel) -> None:
    stuck = PlainAdapter(0x48)
    release = threading.Event()
    begun = trio.Event()
    token = trio.lowlevel.current_trio_token()

    def stall(*_: object) -> None:
        token.run_sync_soon(begun.set)
        release.wait(20)
        raise error(errno.ETIMEDOUT)

    kernel.plug(1, "bcm2835", stuck)
    kernel.plug(2, "other", PlainAdapter(0x48))
    async with kernel.buses.open("1") as bus, kernel.buses.open("2") as other:
        stuck.i2c_rdwr = stall  # type: ignore[method-assign]
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(bus.transaction, 0x48, 1)
                await begun.wait()
                assert await other.transaction(0x48, 1) == [b"\x00"]
                scope.cancel()
        assert scope.cancelled_caught
        release.set()


async def test_scanning_finds_what_answers_and_what_the_kernel_has(kernel: Kernel) -> None:
    adapter = StubAdapter(0x10, 0x48, 0x50, 0x77)
    kernel.plug(1, "SMBus stub driver", adapter)
    kernel.bind(1, 0x1A, "wm8731")
    async with kernel.buses.open("1") as bus:
        assert await scan(bus) == [0x10, 0x1A, 0x48, 0x50, 0x77]
    assert adapter.calls.count("read_byte") == 8 + 16
    assert adapter.calls.count("write_quick") == 0x78 - 8 - 24 - 1


async def test_scanning_reads_where_an_empty_write_is_not_possible(kernel: Kernel) -> None:
    adapter = PlainAdapter(0x48)
    kernel.plug(1, "no zero length", adapter)
    carry_out = adapter.i2c_rdwr

    def refuse_empty(*messages: object) -> None:
        if not messages[0].len:  # type: ignore[attr-defined]
            raise error(errno.EOPNOTSUPP)
        carry_out(*messages)

    adapter.i2c_rdwr = refuse_empty  # type: ignore[method-assign]
    async with kernel.buses.open("1") as bus:
        assert await scan(bus) == [0x48]


@pytest.mark.parametrize(("number", "fault"), [(errno.ETIMEDOUT, Fault.TIMEOUT), (errno.EIO, Fault.BUS)])
async def test_scanning_a_stuck_bus_says_so(kernel: Kernel, number: int, fault: Fault) -> None:
    adapter = PlainAdapter(0x48)
    adapter.fail = [error(number) for _ in range(300)]
    kernel.plug(1, "bcm2835", adapter)
    async with kernel.buses.open("1") as bus:
        with pytest.raises(HalError) as caught:
            await scan(bus)
        assert caught.value.fault is fault
    assert len(adapter.transfers) == (1 if fault is Fault.TIMEOUT else 0x70)
