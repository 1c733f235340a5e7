"""Simulated I2C and SPI: chips, order, cancellation, faults and unplugging."""

from __future__ import annotations

import errno

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from hal.errors import Fault, HalError
from hal.ports.spi import SpiSettings
from hal.sim import World
from hal.sim.faults import FaultPlan
from hal.sim.hardware import SimHardware
from hal.sim.target import Nak


class Memory:
    """A chip with registers; the first byte of a write selects the register."""

    def __init__(self) -> None:
        self.data = bytearray(256)
        self.at = 0
        self.log: list[bytes | int] = []

    def write(self, data: bytes) -> None:
        if data[:1] == b"\xff":
            raise Nak
        self.log.append(data)
        if data:
            self.at = data[0]
            self.data[self.at : self.at + len(data) - 1] = data[1:]

    def read(self, n: int) -> bytes:
        self.log.append(n)
        return bytes(self.data[self.at : self.at + n])


class Echo:
    """Returns each byte it receives, plus one."""

    def transfer(self, data: bytes) -> bytes:
        return bytes(byte + 1 & 0xFF for byte in data)


@pytest.fixture
def hardware() -> SimHardware:
    hardware = SimHardware(World(seed=1))
    hardware.bus("1").attach(0x48, Memory())
    hardware.spi_bus("0").attach(1, Echo())
    return hardware


async def test_a_transaction_writes_and_reads_in_order(hardware: SimHardware, autojump_clock: MockClock) -> None:
    async with hardware.i2c("1") as bus:
        assert await bus.transaction(0x48, b"\x10\x01\x02\x03") == []
        assert await bus.transaction(0x48, b"\x11", 2) == [b"\x02\x03"]
        assert await bus.transaction(0x48, b"\x10", 1, b"\x12", 1) == [b"\x01", b"\x03"]
        assert await bus.transaction(0x48, b"") == []


@pytest.mark.parametrize("name", ["1", "i2c-1", "/dev/i2c-1"])
async def test_a_bus_has_one_name_for_all_ways_to_open_it(
    hardware: SimHardware, autojump_clock: MockClock, name: str
) -> None:
    async with hardware.i2c(name) as bus:
        assert bus.name == "i2c-1"
        await bus.transaction(0x48, b"")


async def test_no_chip_at_the_address_and_a_refused_byte(hardware: SimHardware, autojump_clock: MockClock) -> None:
    async with hardware.i2c("1") as bus:
        for address, step in ((0x49, b""), (0x48, b"\xff")):
            with pytest.raises(
                HalError, match=f"i2c-1 address 0x{address:02x}: nobody answers: check the wiring"
            ) as caught:
                await bus.transaction(address, step)
            assert caught.value.fault is Fault.NO_ACKNOWLEDGE
        hardware.bus("1").detach(0x48)
        with pytest.raises(HalError, match="check the wiring"):
            await bus.transaction(0x48, b"")


async def test_invalid_transactions(hardware: SimHardware, autojump_clock: MockClock) -> None:
    async with hardware.i2c("1") as bus:
        with pytest.raises(HalError, match="0x90 is not a 7-bit address: shift it") as caught:
            await bus.transaction(0x90, b"")
        assert caught.value.fault is Fault.UNSUPPORTED
        with pytest.raises(ValueError, match="at least one step"):
            await bus.transaction(0x48)


def test_two_chips_at_one_address_are_a_mistake(hardware: SimHardware) -> None:
    with pytest.raises(ValueError, match="i2c-1 address 0x48 is already used by a chip"):
        hardware.bus("1").attach(0x48, Memory())
    with pytest.raises(ValueError, match=r"spidev0.1 is already used by a chip"):
        hardware.spi_bus("0").attach(1, Echo())


async def test_random_faults_are_the_same_for_the_same_seed(autojump_clock: MockClock) -> None:
    async def run() -> list[bool]:
        hardware = SimHardware(World(seed=5))
        hardware.bus("1").attach(0x48, Memory())
        hardware.faults.inject("i2c-1 address 0x48", FaultPlan(Fault.NO_ACKNOWLEDGE, probability=0.5))
        failed = []
        async with hardware.i2c("1") as bus:
            for _ in range(50):
                try:
                    await bus.transaction(0x48, b"")
                    failed.append(False)
                except HalError:
                    failed.append(True)
        return failed

    first = await run()
    assert first == await run()
    assert 10 < sum(first) < 40


async def test_a_fault_can_last_for_some_transactions_of_the_whole_bus(
    hardware: SimHardware, autojump_clock: MockClock
) -> None:
    async with hardware.i2c("1") as bus:
        hardware.faults.inject("i2c-1", FaultPlan(Fault.BUS, times=2))
        for _ in range(2):
            with pytest.raises(HalError, match="Input/output error") as caught:
                await bus.transaction(0x48, b"")
            assert isinstance(caught.value.__cause__, OSError)
            assert caught.value.__cause__.errno == errno.EIO
        await bus.transaction(0x48, b"")


async def test_a_stuck_bus_times_out_after_a_second_and_recovers(
    hardware: SimHardware, autojump_clock: MockClock
) -> None:
    begin = trio.current_time()
    async with hardware.i2c("1") as bus:
        hardware.bus("1").stall()
        with pytest.raises(HalError, match="clock or data line is held low") as caught:
            await bus.transaction(0x48, b"")
        assert caught.value.fault is Fault.TIMEOUT
        assert trio.current_time() - begin == pytest.approx(1.0)
        hardware.bus("1").release()
        await bus.transaction(0x48, b"")


async def test_transactions_run_in_the_order_of_the_calls(hardware: SimHardware, autojump_clock: MockClock) -> None:
    hardware.faults.inject("i2c-1", FaultPlan(delay=1.0))
    done: list[tuple[int, float]] = []
    begin = trio.current_time()

    async def ask(n: int) -> None:
        await bus.transaction(0x48, bytes([n]))
        done.append((n, trio.current_time() - begin))

    async with hardware.i2c("1") as bus, trio.open_nursery() as nursery:
        for n in range(3):
            nursery.start_soon(ask, n)
            await wait_all_tasks_blocked()
    assert done == [(0, 1.0), (1, 2.0), (2, 3.0)]


async def test_a_waiting_transaction_can_be_cancelled_and_a_running_one_is_completed(
    hardware: SimHardware, autojump_clock: MockClock
) -> None:
    memory = Memory()
    hardware.bus("1").attach(0x50, memory)
    begin = trio.current_time()
    async with hardware.i2c("1") as bus:
        hardware.faults.inject("i2c-1", FaultPlan(delay=2.0))
        with trio.move_on_after(0.5):
            await bus.transaction(0x50, b"\x01")
        assert trio.current_time() - begin == 0.5
        with trio.move_on_after(0.5):  # the bus is still busy with the first transaction
            await bus.transaction(0x50, b"\x02")
        await bus.transaction(0x50, b"\x03")
    assert memory.log == [b"\x01", b"\x03"]
    assert trio.current_time() - begin == 4.0


async def test_an_adapter_unplugged_in_use_and_plugged_in_again(
    hardware: SimHardware, autojump_clock: MockClock
) -> None:
    adapter = hardware.bus("1")
    async with hardware.i2c("1") as bus:

        async def lose() -> None:
            with pytest.raises(HalError, match="i2c-1: the adapter is gone: plug") as caught:
                await bus.lost()
            assert caught.value.fault is Fault.GONE

        async with trio.open_nursery() as nursery:
            nursery.start_soon(lose)
            await wait_all_tasks_blocked()
            adapter.unplug()
        with pytest.raises(HalError, match="the adapter is gone"):
            await bus.transaction(0x48, b"")
        with pytest.raises(HalError, match="the adapter is gone"):
            await hardware.i2c("1").__aenter__()
        adapter.plug()
        await bus.transaction(0x48, b"")


async def test_a_hung_transaction_ends_when_the_adapter_is_unplugged(
    hardware: SimHardware, autojump_clock: MockClock
) -> None:
    begin = trio.current_time()
    hardware.faults.inject("i2c-1", FaultPlan(delay=100.0))
    async with hardware.i2c("1") as bus, trio.open_nursery() as nursery:

        async def hang() -> None:
            with pytest.raises(HalError) as caught:
                await bus.transaction(0x48, b"")
            assert caught.value.fault is Fault.GONE

        nursery.start_soon(hang)
        await wait_all_tasks_blocked()
        hardware.bus("1").unplug()
    assert trio.current_time() == begin


async def test_bit_errors(hardware: SimHardware, autojump_clock: MockClock) -> None:
    async with hardware.i2c("1") as bus:
        with hardware.faults.injected("i2c-1 address 0x48", FaultPlan(bit_errors=1.0)):
            [data] = await bus.transaction(0x48, b"\x00", 8)
            assert [byte.bit_count() for byte in data] == [1] * 8
        assert await bus.transaction(0x48, b"\x00", 8) == [bytes(8)]


async def test_spi_parts_are_one_transfer_and_return_separately(
    hardware: SimHardware, autojump_clock: MockClock
) -> None:
    async with hardware.spi("0", 1, SpiSettings()) as device:
        assert await device.transfer(b"\x01\x02", b"\xff") == [b"\x02\x03", b"\x00"]
    async with hardware.spi("/dev/spidev0.0", 0, SpiSettings()) as absent:
        assert await absent.transfer(b"\x01") == [b"\xff"]


async def test_an_spi_device_can_be_opened_only_once(hardware: SimHardware, autojump_clock: MockClock) -> None:
    async with hardware.spi("0", 1, SpiSettings()), hardware.spi("0", 0, SpiSettings()):
        with pytest.raises(HalError, match=r"/dev/spidev0\.1 is already open") as caught:
            await hardware.spi("0", 1, SpiSettings()).__aenter__()
        assert caught.value.fault is Fault.BUSY


async def test_spi_faults(hardware: SimHardware, autojump_clock: MockClock) -> None:
    async with hardware.spi("0", 1, SpiSettings()) as device:
        with hardware.faults.injected("spidev0.1", FaultPlan(Fault.BUS)), pytest.raises(HalError, match="Input/output"):
            await device.transfer(b"\x01")
        hardware.spi_bus("0").unplug()
        with pytest.raises(HalError) as caught:
            await device.transfer(b"\x01")
        assert caught.value.fault is Fault.GONE
        hardware.spi_bus("0").plug()
        assert await device.transfer(b"\x01") == [b"\x02"]
