"""Event devices: events as the kernel packs them, and a device with recorded replies to ioctls."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from hal.errors import Fault, HalError
from hal.linux import evdev_codec as codec
from hal.linux.evdev import EventDevice, find_controls, open_controls
from hal.ports.controls import AxisRange, ControlChange, ControlsIdentity

SOUTH, EAST, X, Y = 0x130, 0x131, 0, 1


def event(kind: int, code: int, value: int, seconds: int = 1) -> bytes:
    return struct.pack("@LLHHi", seconds, 500_000, kind, code, value)


REPORT = event(codec.EV_SYN, codec.SYN_REPORT, 0)
DROPPED = event(codec.EV_SYN, codec.SYN_DROPPED, 0)


def test_sizes_and_requests_are_those_of_the_kernel_headers() -> None:
    """The expected values come from linux/input.h compiled on x86-64; other 64-bit Linux platforms share its layout."""
    if struct.calcsize("@L") == 8:
        assert codec.EVENT.size == 24
    assert codec.ABSINFO.size == 24
    assert codec.EVIOCGID == 0x80084502
    assert codec.EVIOCGRAB == 0x40044590
    assert codec.eviocgname(256) == 0x81004506
    assert codec.eviocguniq(256) == 0x81004508
    assert codec.eviocgkey(96) == 0x80604518
    assert codec.eviocgbit(codec.EV_KEY, 96) == 0x80604521
    assert codec.eviocgbit(codec.EV_ABS, 8) == 0x80084523
    assert codec.eviocgabs(5) == 0x80184545


@given(st.frozensets(st.integers(0, codec.KEY_COUNT - 1)))
def test_bit_fields(numbers: frozenset[int]) -> None:
    words = [0] * (codec.KEY_COUNT // 64)
    for number in numbers:
        words[number // 64] |= 1 << number % 64
    if struct.calcsize("@L") == 8:
        assert codec.codes(struct.pack(f"@{len(words)}L", *words)) == numbers
        text = " ".join(f"{word:x}" for word in reversed(words)).lstrip("0 ")
        assert codec.sysfs_codes(text) == numbers


def test_events_become_batches_across_reads() -> None:
    batches = codec.Batches()
    assert [*batches.feed(event(codec.EV_ABS, X, 5))] == []
    (batch,) = batches.feed(event(codec.EV_KEY, SOUTH, 1) + REPORT)
    assert batch.time == 1.5
    assert [(e.type, e.code, e.value) for e in batch.events] == [(3, X, 5), (1, SOUTH, 1)]
    first, second = batches.feed(event(codec.EV_ABS, X, 1) + DROPPED + event(codec.EV_ABS, X, 2) + REPORT + REPORT)
    assert (first.events, first.overflow) == ((), True)
    assert not second.overflow


class Recorded(EventDevice):
    """A device with recorded replies to ioctls, whose events come through a pipe."""

    def __init__(self, fd: int) -> None:
        self.pressed = {SOUTH}
        self.values = {X: 0, Y: -32768}
        super().__init__(fd, "/dev/input/event7")

    def _ask(self, request: int, size: int) -> bytes:
        number = request & 0xFF
        if request == codec.EVIOCGID:
            return struct.pack("@4H", 3, 0x045E, 0x028E, 0x110)
        if number == 0x06:
            return b"Microsoft X-Box 360 pad".ljust(size, b"\0")
        if number == 0x08:
            raise FileNotFoundError(2, "No such file or directory")
        if number == 0x18:
            return self._field(self.pressed, size)
        if number == 0x20 + codec.EV_KEY:
            return self._field({SOUTH, EAST}, size)
        if number == 0x20 + codec.EV_ABS:
            return self._field(set(self.values), size)
        return struct.pack("@6i", self.values[number - 0x40], -32768, 32767, 16, 128, 0)

    @staticmethod
    def _field(numbers: set[int], size: int) -> bytes:
        return sum(1 << number for number in numbers).to_bytes(size, "little")


@pytest.fixture
def pipe() -> Iterator[tuple[Recorded, int]]:
    read, write = os.pipe()
    os.set_blocking(read, False)
    yield Recorded(read), write
    os.close(read)
    try:
        os.close(write)
    except OSError:
        pass


def test_properties_of_a_device(pipe: tuple[Recorded, int]) -> None:
    device, _ = pipe
    assert device.identity == ControlsIdentity("/dev/input/event7", "Microsoft X-Box 360 pad", 0x045E, 0x028E, "")
    assert device.keys == {SOUTH, EAST}
    assert device.axes == {X: AxisRange(-32768, 32767, 128), Y: AxisRange(-32768, 32767, 128)}
    assert set(device.state()) == {
        ControlChange(True, SOUTH, 1),
        ControlChange(True, EAST, 0),
        ControlChange(False, X, 0),
        ControlChange(False, Y, -32768),
    }


async def test_reports_are_waited_for(pipe: tuple[Recorded, int]) -> None:
    device, write = pipe
    reports = []

    async def read() -> None:
        reports.append(await anext(aiter(device)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        os.write(write, event(codec.EV_ABS, X, 7) + event(0x04, 4, 589825))  # and a scan code, which is ignored
        await trio.testing.wait_all_tasks_blocked()
        assert not reports
        os.write(write, REPORT)
    assert reports[0].changes == (ControlChange(False, X, 7),)
    assert reports[0].time == 1.5


async def test_after_an_overflow_the_difference_is_reported(pipe: tuple[Recorded, int]) -> None:
    device, write = pipe
    os.write(write, event(codec.EV_KEY, SOUTH, 2) + event(codec.EV_ABS, X, 7) + REPORT)
    await anext(aiter(device))
    device.pressed = {EAST}
    device.values = {X: 7, Y: 100}
    os.write(write, event(codec.EV_ABS, X, 1) + DROPPED + event(codec.EV_KEY, SOUTH, 1) + REPORT)
    report = await anext(aiter(device))
    assert set(report.changes) == {
        ControlChange(True, SOUTH, 0),
        ControlChange(True, EAST, 1),
        ControlChange(False, Y, 100),
    }
    os.write(write, DROPPED + REPORT + event(codec.EV_ABS, X, 9) + REPORT)  # no difference, so no report
    assert (await anext(aiter(device))).changes == (ControlChange(False, X, 9),)


# ---- finding a device in a tree like that of sysfs


def plug(root: Path, number: int, name: str, ids: tuple[str, str], keys: str, uniq: str = "") -> None:
    device = root / f"sys/class/input/event{number}/device"
    (device / "id").mkdir(parents=True)
    (device / "capabilities").mkdir()
    (device / "name").write_text(name + "\n")
    (device / "uniq").write_text(uniq + "\n")
    (device / "id/vendor").write_text(ids[0] + "\n")
    (device / "id/product").write_text(ids[1] + "\n")
    (device / "capabilities/key").write_text(keys + "\n")


GAMEPAD = "7cdb000000000000 0 0 0 0"  # Xbox 360 gamepad, from /sys/class/input/event*/device/capabilities/key


@pytest.fixture
def computer(tmp_path: Path) -> Path:
    plug(tmp_path, 0, "AT Keyboard", ("0001", "0001"), "402000000 3803078f800d001 feffffdfffefffff fffffffffffffffe")
    plug(tmp_path, 12, "Second Pad", ("045e", "028e"), GAMEPAD, "aa:bb")
    plug(tmp_path, 3, "First Pad", ("045e", "02d1"), GAMEPAD)
    plug(tmp_path, 4, "First Pad Motion Sensors", ("045e", "02d1"), "0")
    return tmp_path


@pytest.mark.parametrize(
    ("expected", "path"),
    [
        (ControlsIdentity(), "/dev/input/event3"),
        (ControlsIdentity(name="Second Pad"), "/dev/input/event12"),
        (ControlsIdentity(vendor=0x045E, product=0x02D1), "/dev/input/event3"),
        (ControlsIdentity(serial="aa:bb"), "/dev/input/event12"),
        (ControlsIdentity(name="AT Keyboard"), "/dev/input/event0"),
    ],
)
def test_a_gamepad_is_found(computer: Path, expected: ControlsIdentity, path: str) -> None:
    assert find_controls(expected, computer).path == path


def test_none_is_found(computer: Path) -> None:
    with pytest.raises(
        HalError, match=r"no input device is 1234:any; there are /dev/input/event3 'First Pad'"
    ) as caught:
        find_controls(ControlsIdentity(vendor=0x1234), computer)
    assert caught.value.fault is Fault.GONE
    with pytest.raises(HalError, match="there are no gamepads"):
        find_controls(ControlsIdentity(), computer / "nowhere")


async def test_files_that_are_not_event_devices_are_refused(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    for path, fault in ((plain, Fault.UNSUPPORTED), (tmp_path / "none", Fault.GONE)):
        with pytest.raises(HalError, match=path.name) as caught:
            async with open_controls(ControlsIdentity(str(path))):
                raise AssertionError
        assert caught.value.fault is fault
