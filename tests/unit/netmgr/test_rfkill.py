"""The switches of radios, with a file in place of the kernel's device."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
import trio

from netmgr.netlink.rfkill import Switches

WLAN, BLUETOOTH = 1, 2
ADD, DEL, CHANGE = 0, 1, 2


@pytest.fixture
def names(tmp_path: Path) -> Path:
    for number, name in ((0, "phy0"), (3, "phy1"), (4, "hci0"), (5, "platform-wlan")):
        (tmp_path / f"rfkill{number}").mkdir()
        (tmp_path / f"rfkill{number}" / "name").write_text(f"{name}\n")
    return tmp_path


class Device:
    """A FIFO that is written as the kernel would; it keeps what is written to it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "rfkill"
        os.mkfifo(self.path)
        self._end = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)

    def send(self, number: int, kind: int, operation: int, soft: int = 0, hard: int = 0) -> None:
        # a read of the kernel returns one event; a FIFO may return several, so each has the size of a read
        os.write(self._end, struct.pack("=IBBBB", number, kind, operation, soft, hard).ljust(64, b"\0"))

    def close(self) -> None:
        os.close(self._end)


async def test_blocks_are_followed_by_radio(tmp_path: Path, names: Path) -> None:
    device = Device(tmp_path)
    device.send(0, WLAN, ADD)
    device.send(3, WLAN, ADD, soft=1)
    device.send(4, BLUETOOTH, ADD, soft=1)
    device.send(5, WLAN, ADD, hard=1)
    with Switches(device.path, names) as switches:
        assert [switches.blocked(wiphy) for wiphy in (0, 1, 2)] == ["", "soft", ""]
        device.send(0, WLAN, CHANGE, soft=1, hard=1)
        with trio.fail_after(5):
            await switches.wait()
        assert switches.blocked(0) == "hard"
        device.send(0, WLAN, DEL)
        with trio.fail_after(5):
            await switches.wait()
        assert switches.blocked(0) == ""
    device.close()


async def test_a_soft_block_is_removed(tmp_path: Path, names: Path) -> None:
    device = Device(tmp_path)
    device.send(3, WLAN, ADD, soft=1)
    with Switches(device.path, names) as switches:
        switches.unblock(0)  # nothing is known of it
        switches.unblock(1)
        written = os.read(device._end, 64)
    assert struct.unpack("=IBBBB", written) == (3, WLAN, CHANGE, 0, 0)
    device.close()


async def test_a_kernel_without_switches_blocks_nothing(tmp_path: Path) -> None:
    with Switches(tmp_path / "none", tmp_path) as switches:
        assert switches.blocked(0) == ""
        switches.unblock(0)
        with trio.move_on_after(0.01) as scope:
            await switches.wait()
    assert scope.cancelled_caught
