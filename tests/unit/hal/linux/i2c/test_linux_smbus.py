"""Forms of transactions on adapters with SMBus calls only, on a fake that behaves like i2c-stub."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal.errors import Fault, HalError
from hal.linux.i2c import smbus
from hal.linux.i2c.smbus import carry_out
from tests.unit.hal.linux.i2c.i2c_fakes import STUB_FUNCTIONS, StubAdapter

A = 0x48


def adapter() -> StubAdapter:
    bus = StubAdapter(A)
    bus.chips[A].words[:] = [0xA500 + register for register in range(256)]
    return bus


@pytest.mark.parametrize(
    ("steps", "call", "answer"),
    [
        ((b"",), "write_quick", []),
        ((1,), "read_byte", [b"\x00"]),
        ((b"\x07",), "write_byte", []),
        ((b"\x07\x99",), "write_byte_data", []),
        ((b"\x07\x34\x12",), "write_word_data", []),
        ((b"\x07\x01\x02\x03",), "write_i2c_block_data", []),
        ((b"\x07" + bytes(32),), "write_i2c_block_data", []),
        ((b"\x07", 1), "read_byte_data", [b"\x07"]),
        ((b"\x07", 2), "read_word_data", [b"\x07\xa5"]),
        ((b"\x07", 3), "read_i2c_block_data", [b"\x07\x08\x09"]),
        ((b"\x07", 32), "read_i2c_block_data", [bytes(range(7, 39))]),
    ],
)
def test_each_shape_is_one_call(steps: tuple[bytes | int, ...], call: str, answer: list[bytes]) -> None:
    bus = adapter()
    assert carry_out(bus, STUB_FUNCTIONS, A, steps) == answer
    assert bus.calls == [call]


def test_words_go_over_the_wire_low_byte_first() -> None:
    bus = adapter()
    carry_out(bus, STUB_FUNCTIONS, A, (b"\x07\x34\x12",))
    assert bus.chips[A].words[7] == 0x1234
    assert carry_out(bus, STUB_FUNCTIONS, A, (b"\x07", 2)) == [b"\x34\x12"]


def test_a_byte_written_alone_is_where_the_next_byte_is_read() -> None:
    bus = adapter()
    carry_out(bus, STUB_FUNCTIONS, A, (b"\x20",))
    assert [carry_out(bus, STUB_FUNCTIONS, A, (1,)) for _ in range(2)] == [[b"\x20"], [b"\x21"]]


@pytest.mark.parametrize("steps", [(b"\x07\x34\x12",), (b"\x07", 2)])
def test_an_adapter_without_word_calls_uses_blocks(steps: tuple[bytes | int, ...]) -> None:
    bus = adapter()
    carry_out(bus, STUB_FUNCTIONS & ~(smbus.READ_WORD_DATA | smbus.WRITE_WORD_DATA), A, steps)
    assert bus.calls in (["read_i2c_block_data"], ["write_i2c_block_data"])


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ((2,), "read 2 bytes"),
        ((b"\x00\x10", 4), "write 2 and then read 4 bytes"),
        ((b"\x00", 33), "write 1 and then read 33 bytes"),
        ((bytes(34),), "write 34 bytes"),
        ((b"\x00", b"\x01"), "write 1 and then write 1 bytes"),
        ((b"\x00", 1, b"\x02", 1), "write 1 and then read 1 and then write 1 and then read 1 bytes"),
        ((b"", 1), "write 0 and then read 1 bytes"),
        ((b"\x00", 0), "write 1 and then read 0 bytes"),
        ((1, b"\x00"), "read 1 and then write 1 bytes"),
    ],
)
def test_transactions_that_smbus_cannot_express_are_refused_before_any_call(
    steps: tuple[bytes | int, ...], words: str
) -> None:
    bus = adapter()
    with pytest.raises(HalError, match=f"none of them can {words}: ") as caught:
        carry_out(bus, STUB_FUNCTIONS, A, steps)
    assert caught.value.fault is Fault.UNSUPPORTED
    assert bus.calls == []


@given(st.integers(0, 223), st.binary(min_size=1, max_size=32))
def test_written_bytes_are_read_back_and_words_are_two_byte_registers(start: int, data: bytes) -> None:
    bus = adapter()
    carry_out(bus, STUB_FUNCTIONS, A, (bytes([start]) + data,))
    assert carry_out(bus, STUB_FUNCTIONS, A, (bytes([start]), len(data))) == [data]


@given(
    st.lists(st.one_of(st.binary(max_size=40), st.integers(0, 40)), max_size=3),
    st.integers(0, 0xFFFFFFFF),
)
def test_whatever_is_asked_it_is_one_call_or_refused(steps: list[bytes | int], functions: int) -> None:
    bus = adapter()
    try:
        answer = carry_out(bus, functions, A, steps)
    except HalError:
        assert bus.calls == []
    else:
        assert len(bus.calls) == 1
        assert [len(part) for part in answer] == [step for step in steps if isinstance(step, int) and step]
