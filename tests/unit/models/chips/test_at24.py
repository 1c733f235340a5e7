"""AT24 EEPROMs: pages, addressing, write cycles, failures, and the driver against the plant model."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from hal.errors import Fault, HalError
from hal.registers import Registers
from hal.sim import World
from hal.sim.faults import FaultPlan
from hal.sim.hardware import SimHardware
from hal.sim.target import Nak
from models.chips.at24 import chip as at24
from models.chips.at24.simulation import PAGES, At24Target
from schema.errors import ErrorKind, MachineError
from tests.unit.models.chips.bench import driving, virtually


def bus_with(target: At24Target) -> Registers:
    bus = SimHardware(World()).bus("1")
    for number, block in enumerate(target.blocks()):
        bus.attach(0x50 + number, block)
    return Registers(bus, 0x50)


# The data sheets are named in models/chips/at24/chip.py; model names contain the size in bits.
@pytest.mark.parametrize(("name", "model"), at24.MODELS.items())
def test_sizes(name: str, model: at24.EepromSize) -> None:
    assert model.size == int(name[3:]) * 1024 // 8
    assert model.page == PAGES[model.size]
    assert model.word_bytes == (1 if model.size <= 2048 else 2)
    assert model.addresses == {"24c04": 2, "24c08": 4, "24c16": 8}.get(name, 1)


def test_word_addresses() -> None:
    assert at24.word_address(0x1FF, at24.MODELS["24c04"]) == (1, b"\xff")
    assert at24.word_address(0x7A3, at24.MODELS["24c16"]) == (7, b"\xa3")
    assert at24.word_address(0x1234, at24.MODELS["24c64"]) == (0, b"\x12\x34")


@given(st.integers(0, 5000), st.integers(0, 600), st.sampled_from([8, 16, 32, 64, 128]))
def test_no_piece_crosses_a_page_and_nothing_is_lost(offset: int, count: int, page: int) -> None:
    cut = list(at24.pieces(offset, count, page))
    assert sum(length for _, length in cut) == count
    at = offset
    for start, length in cut:
        assert start == at
        assert length > 0
        assert start // page == (start + length - 1) // page
        at += length


@given(st.sampled_from(sorted(at24.MODELS)), st.data())
def test_a_write_changes_only_the_written_bytes(name: str, data: st.DataObject) -> None:
    model = at24.MODELS[name]
    content = data.draw(st.binary(min_size=1, max_size=300))[: model.size]
    offset = data.draw(st.integers(0, model.size - len(content)))

    async def there_and_back() -> tuple[bytes, bytes]:
        target = At24Target(model.size)
        chip = at24.At24(bus_with(target), model)
        await chip.identify()
        await chip.write(offset, content)
        return await chip.read(offset, len(content)), bytes(target.memory)

    read, memory = virtually(there_and_back)
    assert read == content
    blank = b"\xff" * model.size
    assert memory == blank[:offset] + content + blank[offset + len(content) :]


def test_a_whole_chip_is_read() -> None:
    async def read() -> bool:
        target = At24Target(2048)
        target.memory[:] = bytes(n * 7 & 0xFF for n in range(2048))
        return await at24.At24(bus_with(target), at24.MODELS["24c16"]).read(0, 2048) == target.memory

    assert virtually(read)


async def test_it_waits_for_the_write_cycle_by_asking(autojump_clock: MockClock) -> None:
    target = At24Target(4096)
    target.write_cycle = 0.0042
    began = trio.current_time()
    await at24.At24(bus_with(target), at24.MODELS["24c32"]).write(0, b"x" * 32)
    assert 0.0042 <= trio.current_time() - began < 0.0055


async def test_a_write_that_never_ends(autojump_clock: MockClock) -> None:
    target = At24Target(4096)
    target.write_cycle = 1.0
    began = trio.current_time()
    with pytest.raises(HalError, match="24C32 at i2c-1 address 0x50 does not finish writing") as caught:
        await at24.At24(bus_with(target), at24.MODELS["24c32"]).write(0, b"x")
    assert caught.value.fault is Fault.TIMEOUT
    assert trio.current_time() - began < 0.03


async def test_a_computer_that_is_late_does_not_give_it_up(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = At24Target(4096)
    registers = bus_with(target)
    quick = registers.bus.transaction

    async def slow(*words: Any) -> Any:
        await trio.sleep(0.04)  # longer than the wait for a write cycle
        return await quick(*words)

    monkeypatch.setattr(registers.bus, "transaction", slow)
    await at24.At24(registers, at24.MODELS["24c32"]).write(0, b"x" * 32)
    assert target.memory[:32] == b"x" * 32


async def test_another_error_while_waiting_is_not_swallowed(autojump_clock: MockClock) -> None:
    target = At24Target(4096)
    registers = bus_with(target)
    chip = at24.At24(registers, at24.MODELS["24c32"])
    async with trio.open_nursery() as nursery:

        async def unplug() -> None:
            await trio.sleep(0.001)
            registers.bus.unplug()  # type: ignore[attr-defined]

        nursery.start_soon(unplug)
        with pytest.raises(HalError) as caught:
            await chip.write(0, b"x")
    assert caught.value.fault is Fault.GONE


async def test_a_protected_chip_says_so(autojump_clock: MockClock) -> None:
    target = At24Target(256)
    target.protected = True
    with pytest.raises(HalError, match="24C02 at i2c-1 address 0x50 has not stored 3 bytes at 5: connect its pin WP"):
        await at24.At24(bus_with(target), at24.MODELS["24c02"]).write(5, b"abc")


@pytest.mark.parametrize(("offset", "count"), [(-1, 1), (0, -1), (250, 7), (256, 1)])
async def test_beyond_the_chip(offset: int, count: int) -> None:
    chip = at24.At24(bus_with(At24Target(256, clock=lambda: 0.0)), at24.MODELS["24c02"])
    with pytest.raises(ValueError, match="are not within the 256 bytes of a 24C02"):
        await chip.read(offset, count)


async def test_commands(autojump_clock: MockClock) -> None:
    target = At24Target(4096)
    async with driving("generic", "at24", 0x50, target, chip="24c32") as driven:

        async def do(**command: object) -> object:
            return await driven.call("do_command", command=command)

        assert await do(size={}) == {"bytes": 4096, "page": 32}
        assert await do(write={"offset": 30, "hex": "00 01 02 03"}) == {"written": 4}
        assert bytes(target.memory[28:36]) == b"\xff\xff\x00\x01\x02\x03\xff\xff"
        assert await do(write={"offset": 100, "text": "serial 42"}) == {"written": 9}
        assert await do(read={"offset": 100, "count": 9}) == {"hex": b"serial 42".hex()}
        assert await do(erase={"offset": 31, "count": 100}) == {"written": 100}
        assert bytes(target.memory[29:132]) == b"\xff\x00" + b"\xff" * 101
        target.power_cycle()
        assert await do(read={"offset": 30, "count": 1}) == {"hex": "00"}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ({}, "does not support the command"),
        ({"format": {}}, "does not support the command"),
        ({"size": {}, "read": {"offset": 0, "count": 1}}, "does not support the command"),
        ({"read": {"offset": 0}}, "does not support the command"),
        ({"read": {"offset": 1.5, "count": 1}}, "offset is 1.5"),
        ({"read": {"offset": 0, "count": -1}}, "count is -1"),
        ({"read": {"offset": 0, "count": "8"}}, "count is '8'"),
        ({"read": {"offset": True, "count": 1}}, "offset is True"),
        (
            {"read": {"offset": 4000, "count": 97}},
            "97 bytes from offset 4000 are out of range: the chip has 4096 bytes",
        ),
        ({"write": {"offset": 0, "hex": "xyz"}}, "'xyz' is not hexadecimal"),
        ({"write": {"offset": 4095, "text": "ab"}}, "2 bytes from offset 4095 are out of range"),
        ({"erase": {"offset": 0, "count": 4097}}, "4097 bytes from offset 0 are out of range"),
    ],
)
async def test_wrong_commands_write_nothing(autojump_clock: MockClock, command: dict[str, object], words: str) -> None:
    target = At24Target(4096)
    async with driving("generic", "at24", 0x50, target, chip="24c32") as driven:
        with pytest.raises(MachineError, match=words) as caught:
            await driven.call("do_command", command=command)
        assert caught.value.kind is ErrorKind.INVALID
        assert target.memory == b"\xff" * 4096


async def test_all_addresses_of_a_24c16_are_its_own(autojump_clock: MockClock) -> None:
    target = At24Target(2048)
    first, *rest = target.blocks()
    other = {
        "name": "other",
        "api": "rdk:component:generic",
        "model": "at24",
        "attributes": {"i2c_bus": "1", "i2c_address": "0x57", "chip": "24c02"},
        "depends_on": ["it"],
    }
    async with driving("generic", "at24", 0x50, first, other, ready=False, chip="24c16") as driven:
        for number, block in enumerate(rest, 1):
            driven.bus.attach(0x50 + number, block)
        await trio.sleep(2)
        await driven.settle()
        reason = driven.node("other").reason
        assert "i2c-1 address 0x57 is wanted by rdk:component:generic/other and already used by" in reason
        await driven.call("do_command", command={"write": {"offset": 2040, "text": "the end!"}})
        assert target.memory[2040:] == b"the end!"


async def test_no_acknowledge_in_the_middle_keeps_whole_pages(autojump_clock: MockClock) -> None:
    class Tired(At24Target):
        left = 3

        def write_block(self, block: int, data: bytes) -> None:
            if len(data) > 2:
                self.left -= 1
                if self.left == 0:
                    raise Nak
            super().write_block(block, data)

    target = Tired(4096)
    with pytest.raises(HalError) as caught:
        await at24.At24(bus_with(target), at24.MODELS["24c32"]).write(0, b"x" * 128)
    assert caught.value.fault is Fault.NO_ACKNOWLEDGE
    assert target.memory[:128] == b"x" * 64 + b"\xff" * 64


async def test_wrong_bits_on_the_wires_are_noticed(autojump_clock: MockClock) -> None:
    registers = bus_with(At24Target(4096))
    chip = at24.At24(registers, at24.MODELS["24c32"])
    registers.bus._faults.inject("i2c-1 address 0x50", FaultPlan(bit_errors=1.0))  # type: ignore[attr-defined]
    with pytest.raises(HalError, match="has not stored"):
        await chip.write(0, b"important")


def test_the_plant_goes_round_within_a_page() -> None:
    now = 0.0
    target = At24Target(4096, clock=lambda: now)
    target.write(b"\x00\x1e" + b"abcd")  # two bytes before the end of the first page of 32
    assert bytes(target.memory[30:34]) == b"ab\xff\xff"
    assert bytes(target.memory[0:2]) == b"cd"
    with pytest.raises(Nak):
        target.read(1)
    now = 1.0
    target.write(b"\x0f\xff")
    assert target.read(2) == b"\xffc", "and round within the chip when it is read"
