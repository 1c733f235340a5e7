"""I2C adapters that are unplugged and plugged in again, over files like the kernel's."""

from __future__ import annotations

import errno

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from hal.errors import Fault, HalError
from hal.ports.i2c import I2cBus
from tests.unit.hal.linux.i2c.i2c_fakes import Kernel, PlainAdapter, error, failure, kernel, watches

__all__ = ["kernel"]


async def test_an_adapter_unplugged_while_idle_wakes_all_waiters(kernel: Kernel) -> None:
    kernel.plug(7, "i2c-tiny-usb", PlainAdapter(0x48))
    woken: list[HalError] = []
    async with kernel.buses.open("tiny-usb") as bus, kernel.buses.open("7") as same:

        async def wait(bus: I2cBus) -> None:
            with pytest.raises(HalError) as caught:
                await bus.lost()
            woken.append(caught.value)

        async with trio.open_nursery() as nursery:
            for item in (bus, bus, same):
                nursery.start_soon(wait, item)
            await wait_all_tasks_blocked()
            assert watches() == 1  # users have a small quota of inotify instances
            (kernel.dev / "null").touch()  # an unrelated change in /dev
            (kernel.dev / "null").unlink()
            await wait_all_tasks_blocked(0.01)
            assert woken == []
            kernel.unplug(7)
    assert [error.fault for error in woken] == [Fault.GONE] * 3
    assert str(woken[0]) == "i2c-7: the adapter is gone: plug the adapter in again"


async def test_when_the_first_waiter_leaves_the_next_one_watches(kernel: Kernel) -> None:
    kernel.plug(7, "i2c-tiny-usb", PlainAdapter(0x48))
    async with kernel.buses.open("7") as bus, trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as first:
                first.start_soon(bus.lost)
                await wait_all_tasks_blocked()

                async def wait() -> None:
                    with pytest.raises(HalError):
                        await bus.lost()

                nursery.start_soon(wait)
                await wait_all_tasks_blocked()
                scope.cancel()
        kernel.unplug(7)


async def test_a_loss_noticed_by_a_transaction_wakes_waiters(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node never disappears in a container."""
    kernel.plug(7, "i2c-tiny-usb", PlainAdapter(0x48))
    async with kernel.buses.open("7") as bus, trio.open_nursery() as nursery:

        async def wait() -> None:
            with pytest.raises(HalError) as caught:
                await bus.lost()
            assert caught.value.fault is Fault.GONE

        nursery.start_soon(wait)
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()

        def refuse(path: object, flags: int) -> int:
            raise error(errno.ENXIO)

        monkeypatch.setattr("hal.linux.i2c.bus.os.open", refuse)
        assert (await failure(bus, 0x48, 1)).fault is Fault.GONE


async def test_cancelling_a_waiter_is_not_a_loss(kernel: Kernel) -> None:
    kernel.plug(7, "i2c-tiny-usb", PlainAdapter(0x48))
    async with kernel.buses.open("7") as bus:
        with trio.move_on_after(0.01) as scope:
            await bus.lost()
        assert scope.cancelled_caught
        assert await bus.transaction(0x48, 1) == [b"\x00"]


async def test_waiting_for_an_adapter_that_is_already_gone_ends_at_once(kernel: Kernel) -> None:
    kernel.plug(7, "i2c-tiny-usb", PlainAdapter(0x48))
    async with kernel.buses.open("7") as bus:
        kernel.unplug(7)
        with pytest.raises(HalError, match="gone"):
            await bus.lost()
        with pytest.raises(HalError, match="gone"):
            await bus.lost()


async def test_an_adapter_that_comes_back_under_another_number_is_found_by_its_name(kernel: Kernel) -> None:
    kernel.plug(7, "i2c-tiny-usb at bus 001 device 003", PlainAdapter(0x48))
    async with kernel.buses.open("tiny-usb") as bus:
        kernel.unplug(7)
        assert (await failure(bus, 0x48, 1)).fault is Fault.GONE
        assert (await failure(bus, 0x48, 1)).fault is Fault.GONE
        kernel.plug(8, "i2c-tiny-usb at bus 001 device 004", PlainAdapter(0x48))
        assert await bus.transaction(0x48, b"\x07", 1) == [b"\x07"]
        async with kernel.buses.open("8") as again:
            assert again is bus


async def test_after_the_loss_all_users_can_open_the_adapter_again(kernel: Kernel) -> None:
    kernel.plug(7, "i2c-tiny-usb at bus 001 device 003", PlainAdapter(0x48))
    async with kernel.buses.open("tiny-usb") as bus:
        kernel.unplug(7)
        with pytest.raises(HalError):
            await bus.lost()
        kernel.plug(8, "i2c-tiny-usb at bus 001 device 004", PlainAdapter(0x48))
        assert await bus.transaction(0x48, b"\x07", 1) == [b"\x07"]
        with trio.move_on_after(0.01):
            await bus.lost()
            raise AssertionError


async def test_reopening_by_the_same_name_shares_the_adapter(kernel: Kernel) -> None:
    kernel.plug(7, "i2c-tiny-usb at bus 001 device 003", PlainAdapter(0x48))
    async with kernel.buses.open("tiny-usb") as bus:
        kernel.unplug(7)
        with pytest.raises(HalError):
            await bus.lost()
        kernel.plug(8, "i2c-tiny-usb at bus 001 device 004", PlainAdapter(0x48))
        async with kernel.buses.open("tiny-usb") as again:
            assert again is bus


async def test_an_adapter_that_fails_because_it_was_unplugged_is_gone(kernel: Kernel) -> None:
    adapter = PlainAdapter(0x48)
    kernel.plug(7, "i2c-tiny-usb", adapter)

    class Unplugging(OSError):
        """Raised by the transfer during which the adapter is unplugged."""

        def __init__(self) -> None:
            super().__init__(errno.EIO, "Input/output error")

    def unplug(*_: object) -> None:
        kernel.unplug(7)
        raise Unplugging

    async with kernel.buses.open("7") as bus:
        adapter.i2c_rdwr = unplug  # type: ignore[method-assign]
        result = await failure(bus, 0x48, 1)
        assert result.fault is Fault.GONE
        assert isinstance(result.__cause__, Unplugging)


async def test_another_adapter_at_the_same_number_is_not_taken_for_the_one_that_was_there(kernel: Kernel) -> None:
    kernel.plug(7, "i2c-tiny-usb", PlainAdapter(0x48))
    async with kernel.buses.open("7") as bus:
        kernel.unplug(7)
        other = PlainAdapter(0x48)
        kernel.plug(7, "CP2112", other)
        assert (await failure(bus, 0x48, 1)).fault is Fault.GONE
        assert other.transfers == []
        assert await bus.transaction(0x48, 1) == [b"\x00"]  # the bus was opened as `7`, so any adapter at 7 matches


async def test_opening_after_a_replug_does_not_report_the_old_loss(kernel: Kernel) -> None:
    kernel.plug(7, "i2c-tiny-usb", PlainAdapter(0x48))
    async with kernel.buses.open("7"):
        kernel.unplug(7)
        kernel.plug(7, "i2c-tiny-usb", PlainAdapter(0x48))
        async with kernel.buses.open("7") as bus:
            assert await bus.transaction(0x48, 1) == [b"\x00"]
