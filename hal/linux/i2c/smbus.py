"""Transactions on adapters that support only SMBus calls (i2c-stub, i801): select the call with the same effect. Pure.

Byte order and lengths are from the System Management Bus Specification 3.2, section 6.5; names and bits of the calls
from linux/i2c.h, whose I2C block calls are not in that specification.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hal.errors import Fault, HalError

QUICK: Final = 0x00010000
READ_BYTE: Final = 0x00020000
WRITE_BYTE: Final = 0x00040000
READ_BYTE_DATA: Final = 0x00080000
WRITE_BYTE_DATA: Final = 0x00100000
READ_WORD_DATA: Final = 0x00200000
WRITE_WORD_DATA: Final = 0x00400000
READ_BLOCK: Final = 0x04000000
WRITE_BLOCK: Final = 0x08000000
LONGEST_BLOCK: Final = 32  # bytes


@dataclass(frozen=True, slots=True)
class _Row:
    """A call, the function that it needs, and the numbers of bytes that it writes (with the register) and reads."""

    function: int
    written: range
    read: range
    call: Callable[[Any, int, bytes, int], bytes | None]  # smbus2.SMBus, address, data to write, bytes to read


_NONE: Final = range(1)

_ROWS: Final = (
    _Row(QUICK, _NONE, _NONE, lambda bus, address, _, __: bus.write_quick(address)),
    _Row(WRITE_BYTE, range(1, 2), _NONE, lambda bus, address, data, _: bus.write_byte(address, data[0])),
    _Row(WRITE_BYTE_DATA, range(2, 3), _NONE, lambda bus, address, data, _: bus.write_byte_data(address, *data)),
    _Row(
        WRITE_WORD_DATA,
        range(3, 4),
        _NONE,
        lambda bus, address, data, _: bus.write_word_data(address, data[0], int.from_bytes(data[1:], "little")),
    ),
    _Row(
        WRITE_BLOCK,
        range(2, 2 + LONGEST_BLOCK),
        _NONE,
        lambda bus, address, data, _: bus.write_i2c_block_data(address, data[0], list(data[1:])),
    ),
    _Row(READ_BYTE, _NONE, range(1, 2), lambda bus, address, _, __: bytes([bus.read_byte(address)])),
    _Row(
        READ_BYTE_DATA,
        range(1, 2),
        range(1, 2),
        lambda bus, address, data, _: bytes([bus.read_byte_data(address, data[0])]),
    ),
    _Row(
        READ_WORD_DATA,
        range(1, 2),
        range(2, 3),
        lambda bus, address, data, _: bus.read_word_data(address, data[0]).to_bytes(2, "little"),
    ),
    _Row(
        READ_BLOCK,
        range(1, 2),
        range(1, 1 + LONGEST_BLOCK),
        lambda bus, address, data, count: bytes(bus.read_i2c_block_data(address, data[0], count)),
    ),
)


def carry_out(bus: Any, functions: int, address: int, steps: Sequence[bytes | int]) -> list[bytes]:
    """Execute a transaction by one call of `bus`, an smbus2.SMBus or compatible object.

    HalError (unsupported), before anything is sent, if no call of an adapter with these `functions` matches.
    """
    match steps:
        case [bytes() as data]:
            count = 0
        case [int() as count]:
            data = b""
        case [bytes() as data, int() as count] if data and count:
            pass
        case _:
            raise _unsupported(steps)
    for row in _ROWS:
        if len(data) in row.written and count in row.read and functions & row.function:
            answer = row.call(bus, address, data, count)
            return [] if answer is None else [answer]
    raise _unsupported(steps)


def _unsupported(steps: Sequence[bytes | int]) -> HalError:
    actions = [f"read {step}" if isinstance(step, int) else f"write {len(step)}" for step in steps]
    return HalError(
        f"the adapter supports only SMBus calls, and none of them can {' and then '.join(actions)} bytes",
        Fault.UNSUPPORTED,
        remedy=f"write one register byte and at most {LONGEST_BLOCK} bytes at a time, or use an adapter with plain I2C",
    )
