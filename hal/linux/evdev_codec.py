"""Event devices of the Linux input subsystem as bytes: events, bit fields, requests. Pure.

Layouts and numbers are those of linux/input.h and linux/input-event-codes.h; what events mean is in the kernel's
Documentation/input/event-codes.rst.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

EV_SYN: Final = 0x00
EV_KEY: Final = 0x01
EV_ABS: Final = 0x03
SYN_REPORT: Final = 0  # the batch is complete
SYN_DROPPED: Final = 3  # the kernel's buffer overflowed: everything up to the next SYN_REPORT is worthless
KEY_COUNT: Final = 0x300
ABS_COUNT: Final = 0x40
BTN_JOYSTICK: Final = range(0x120, 0x130)
BTN_GAMEPAD: Final = range(0x130, 0x140)

EVENT: Final = struct.Struct("@LLHHi")  # struct input_event: seconds, microseconds, type, code, value
ABSINFO: Final = struct.Struct("@6i")  # struct input_absinfo: value, minimum, maximum, fuzz, flat, resolution
ID: Final = struct.Struct("@4H")  # struct input_id: bustype, vendor, product, version

_WRITE: Final = 1
_READ: Final = 2


class Event(NamedTuple):
    """One event of the kernel."""

    seconds: int
    microseconds: int
    type: int
    code: int
    value: int


class AbsInfo(NamedTuple):
    """An absolute axis."""

    value: int
    minimum: int
    maximum: int
    fuzz: int
    flat: int
    resolution: int


def request(direction: int, number: int, size: int) -> int:
    """An ioctl of type 'E' (asm-generic/ioctl.h)."""
    return direction << 30 | size << 16 | ord("E") << 8 | number


EVIOCGID: Final = request(_READ, 0x02, ID.size)
EVIOCGRAB: Final = request(_WRITE, 0x90, 4)


def eviocgname(size: int) -> int:
    """What the device calls itself."""
    return request(_READ, 0x06, size)


def eviocguniq(size: int) -> int:
    """What makes it unique."""
    return request(_READ, 0x08, size)


def eviocgkey(size: int) -> int:
    """Which keys are pressed, as a bit field."""
    return request(_READ, 0x18, size)


def eviocgbit(kind: int, size: int) -> int:
    """Which codes of a type of event the device has, as a bit field."""
    return request(_READ, 0x20 + kind, size)


def eviocgabs(axis: int) -> int:
    """Value and range of an axis."""
    return request(_READ, 0x40 + axis, ABSINFO.size)


def events(data: bytes) -> Iterator[Event]:
    """What was read from a device; the kernel hands out whole events only."""
    return map(Event._make, EVENT.iter_unpack(data))


def codes(bits: bytes) -> frozenset[int]:
    """The numbers of the bits that are set, in a bit field of native longs."""
    size = struct.calcsize("@L")
    whole = bits.ljust(-(-len(bits) // size) * size, b"\0")
    return frozenset(
        index * size * 8 + bit
        for index, (word,) in enumerate(struct.iter_unpack("@L", whole))
        for bit in range(size * 8)
        if word >> bit & 1
    )


def sysfs_codes(text: str) -> frozenset[int]:
    """As `codes`, of a file below `capabilities` in sysfs: hexadecimal longs, the most significant first."""
    width = struct.calcsize("@L") * 8
    number = 0
    for word in text.split():
        number = number << width | int(word, 16)
    return frozenset(bit for bit in range(number.bit_length()) if number >> bit & 1)


class Batch(NamedTuple):
    """What happened at one moment. After an `overflow` the events in it are not all there were: ask for the state."""

    time: float  # seconds since the epoch
    events: tuple[Event, ...]
    overflow: bool


class Batches:
    """Puts events together to batches, across reads."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._overflow = False

    def feed(self, data: bytes) -> Iterator[Batch]:
        """The batches that `data` completes."""
        for event in events(data):
            if event.type != EV_SYN:
                self._events.append(event)
            elif event.code == SYN_DROPPED:
                self._overflow = True
            elif event.code == SYN_REPORT:
                kept = () if self._overflow else tuple(self._events)
                yield Batch(event.seconds + event.microseconds / 1e6, kept, self._overflow)
                self._events.clear()
                self._overflow = False
