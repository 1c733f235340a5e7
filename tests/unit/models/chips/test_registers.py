"""Registers over a bus, addresses, and the error for an unexpected chip."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal.ports.i2c import FIRST_ADDRESS, LAST_ADDRESS
from hal.registers import Order, Registers
from hal.sim import World
from hal.sim.hardware import SimHardware
from models.chips.common.addresses import OTHERS, address_count, chips_at, others_at
from models.table import CHIPS
from tests.unit.models.chips.bench import registers_of, virtually


class Memory:
    """Provide 256 bytes of memory and record the messages."""

    def __init__(self) -> None:
        self.content = bytearray(range(256))
        self.messages: list[bytes | int] = []
        self._at = 0

    def write(self, data: bytes) -> None:
        self.messages.append(data)
        self._at = data[0]
        self.content[self._at : self._at + len(data) - 1] = data[1:]

    def read(self, n: int) -> bytes:
        self.messages.append(n)
        return bytes(self.content[self._at : self._at + n])


async def test_one_write_and_one_read_for_each_call() -> None:
    memory = Memory()
    registers = registers_of(0x20, memory)
    assert await registers.read(0x10, 3) == b"\x10\x11\x12"
    await registers.write(0x40, b"\xaa\xbb")
    assert memory.messages == [b"\x10", 3, b"\x40\xaa\xbb"]


@pytest.mark.parametrize(
    ("order", "size", "signed", "value"),
    [
        ("big", 1, False, 0x80),
        ("big", 1, True, -128),
        ("big", 2, False, 0x8081),
        ("little", 2, False, 0x8180),
        ("big", 2, True, 0x8081 - 0x10000),
        ("little", 3, False, 0x828180),
        ("big", 3, True, 0x808182 - 0x1000000),
    ],
)
async def test_numbers_are_read_in_the_devices_order(order: Order, size: int, signed: bool, value: int) -> None:
    registers = Registers(registers_of(0x20, Memory()).bus, 0x20, order=order)
    assert await registers.read_int(0x80, size, signed=signed) == value


@given(st.sampled_from([1, 2, 3]), st.sampled_from(["big", "little"]), st.integers(0, (1 << 24) - 1), st.booleans())
def test_written_values_are_read_back(size: int, order: Order, value: int, signed: bool) -> None:
    value %= 1 << (8 * size)
    if signed:
        value -= 1 << (8 * size - 1)

    async def there_and_back() -> int:
        registers = Registers(registers_of(0x20, Memory()).bus, 0x20, order=order)
        await registers.write_int(0x10, value, size)
        return await registers.read_int(0x10, size, signed=signed)

    assert virtually(there_and_back) == value


@pytest.mark.parametrize(("value", "size"), [(256, 1), (-129, 1), (65536, 2), (-32769, 2)])
async def test_values_that_do_not_fit_are_refused(value: int, size: int) -> None:
    memory = Memory()
    with pytest.raises(ValueError, match=rf"{value} does not fit into {size} byte"):
        await registers_of(0x20, memory).write_int(0x01, value, size)
    assert not memory.messages


def test_a_device_has_the_name_of_reservations() -> None:
    assert str(Registers(SimHardware(World()).bus("1"), 0x48)) == "i2c-1 address 0x48"


def test_addresses_of_chips_are_those_of_devices() -> None:
    assert not CHIPS.keys() & OTHERS.keys()
    for name, addresses in {**CHIPS, **OTHERS}.items():
        assert addresses, name
        assert address_count(name) == len(tuple(addresses))
        assert all(FIRST_ADDRESS <= address <= LAST_ADDRESS for address in addresses), name
    assert chips_at(0x48)[:2] == ("TMP102", "LM75")
    assert chips_at(0x70) == ("TCA9548A", "HT16K33"), "a PCA9685 never has its all-call address alone"
    assert others_at(0x76, "BME280") == "; 0x76 may also be BMP280 or PCA9685 or MS5611 or TCA9548A or HT16K33"
    assert others_at(0x0B, "anything") == ""
