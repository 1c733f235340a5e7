"""The binary interface of event devices of the Linux input subsystem: events, bit fields, requests. Pure.

Layouts and numbers are from linux/input.h and linux/input-event-codes.h; the meaning of events is described in the
kernel's Documentation/input/event-codes.rst.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

EV_SYN: Final = 0x00
EV_KEY: Final = 0x01
EV_ABS: Final = 0x03
SYN_REPORT: Final = 0  # the batch is complete
SYN_DROPPED: Final = 3  # the kernel's buffer overflowed: events up to the next SYN_REPORT are invalid
KEY_COUNT: Final = 0x300
ABS_COUNT: Final = 0x40
BTN_JOYSTICK: Final = range(0x120, 0x130)
BTN_GAMEPAD: Final = range(0x130, 0x140)

EVENT: Final = struct.Struct("@LLHHi")  # struct input_event: seconds, microseconds, type, code, value
ABSINFO: Final = struct.Struct("@6i")  # struct input_absinfo: value, minimum, maximum, fuzz, flat, resolution
ID: Final = struct.Struct("@4H")  # struct input_id: bustype, vendor, product, version

_WRITE: Final = 1
_READ: Final = 2


class InputEvent(NamedTuple):
    """An event, struct input_event."""

    seconds: int
    microseconds: int
    type: int
    code: int
    value: int


class AbsInfo(NamedTuple):
    """An absolute axis, struct input_absinfo."""

    value: int
    minimum: int
    maximum: int
    fuzz: int
    flat: int
    resolution: int


def request(direction: int, number: int, size: int) -> int:
    """Return the number of an ioctl of type 'E' (asm-generic/ioctl.h)."""
    return direction << 30 | size << 16 | ord("E") << 8 | number


EVIOCGID: Final = request(_READ, 0x02, ID.size)
EVIOCGRAB: Final = request(_WRITE, 0x90, 4)


def eviocgname(size: int) -> int:
    """Return the request for the name of the device."""
    return request(_READ, 0x06, size)


def eviocguniq(size: int) -> int:
    """Return the request for the unique id of the device."""
    return request(_READ, 0x08, size)


def eviocgkey(size: int) -> int:
    """Return the request for the pressed keys, as a bit field."""
    return request(_READ, 0x18, size)


def eviocgbit(kind: int, size: int) -> int:
    """Return the request for the supported codes of an event type, as a bit field."""
    return request(_READ, 0x20 + kind, size)


def eviocgabs(axis: int) -> int:
    """Return the request for the value and range of an axis."""
    return request(_READ, 0x40 + axis, ABSINFO.size)


def events(data: bytes) -> Iterator[InputEvent]:
    """Decode data read from a device; the kernel returns only complete events."""
    return map(InputEvent._make, EVENT.iter_unpack(data))


def codes(bits: bytes) -> frozenset[int]:
    """Return the numbers of the bits that are set in a bit field of native longs."""
    size = struct.calcsize("@L")
    whole = bits.ljust(-(-len(bits) // size) * size, b"\0")
    return frozenset(
        index * size * 8 + bit
        for index, (word,) in enumerate(struct.iter_unpack("@L", whole))
        for bit in range(size * 8)
        if word >> bit & 1
    )


def sysfs_codes(text: str) -> frozenset[int]:
    """Return the set bits in a file below `capabilities` in sysfs: hexadecimal longs, the most significant first."""
    width = struct.calcsize("@L") * 8
    number = 0
    for word in text.split():
        number = number << width | int(word, 16)
    return frozenset(bit for bit in range(number.bit_length()) if number >> bit & 1)


class Batch(NamedTuple):
    """Events of one moment. With `overflow`, events were lost: query the state."""

    time: float  # seconds since the epoch
    events: tuple[InputEvent, ...]
    overflow: bool


class Batches:
    """Combines events to batches, across several reads."""

    def __init__(self) -> None:
        self._events: list[InputEvent] = []
        self._overflow = False

    def feed(self, data: bytes) -> Iterator[Batch]:
        """Return the batches that `data` completes."""
        for event in events(data):
            if event.type != EV_SYN:
                self._events.append(event)
            elif event.code == SYN_DROPPED:
                self._overflow = True
            elif event.code == SYN_REPORT:
                valid = () if self._overflow else tuple(self._events)
                yield Batch(event.seconds + event.microseconds / 1e6, valid, self._overflow)
                self._events.clear()
                self._overflow = False
