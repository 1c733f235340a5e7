"""The socket that announces devices, on the real kernel, which is asked to announce the loopback interface again."""

from __future__ import annotations

import errno
import os
import socket
import struct
from pathlib import Path

import pytest
import trio

from hal.errors import HalError
from hal.linux import hotplug
from hal.linux.hardware import LinuxHardware
from hal.linux.hotplug import UDEV_CONTROL
from hal.linux.uevent import LOST
from tests.unit.hal.linux.test_uevent import PROPERTIES, encoded, udev

AGAIN = Path("/sys/class/net/lo/uevent")  # writing an action to it makes the kernel announce the device


def announce(action: str = "change") -> None:
    AGAIN.write_text(action)


def may_announce() -> bool:
    try:
        announce()
    except OSError:
        return False
    return not UDEV_CONTROL.exists()


real = pytest.mark.skipif(not may_announce(), reason="needs root and a writable /sys, and no udev")


@real
async def test_events_of_the_kernel_arrive_in_order() -> None:
    with trio.fail_after(30):
        async with LinuxHardware().hotplug() as events, LinuxHardware().hotplug() as others:
            for action in ("change", "remove", "add"):
                announce(action)
            for listener in (events, others):
                got = []
                async for event in listener:
                    if event.device.endswith("/net/lo"):
                        got.append((event.action, event.subsystem, event.node))
                    if len(got) == 3:
                        break
                assert got == [(action, "net", "") for action in ("change", "remove", "add")]


@real
async def test_a_waiting_listener_is_woken_and_can_be_cancelled() -> None:
    with trio.fail_after(30):
        async with LinuxHardware().hotplug() as events:
            with trio.move_on_after(0.01) as limit:
                async for _ in events:
                    pass
            assert limit.cancelled_caught
            async with trio.open_nursery() as nursery:
                got = []

                async def listen() -> None:
                    async for event in events:
                        if event.device.endswith("/net/lo"):
                            got.append(event.action)
                            break

                nursery.start_soon(listen)
                await trio.testing.wait_all_tasks_blocked()
                announce("online")
            assert got == ["online"]


@real
async def test_an_overflow_is_one_event_that_says_so() -> None:
    with trio.fail_after(30):
        async with LinuxHardware().hotplug() as events:
            for _ in range(30_000):
                announce()
            actions = []
            async for event in events:
                actions.append(event.action)
                if event == LOST:
                    announce("online")
                if event.action == "online":
                    break
            assert actions.count("lost") == 1


def heard(message: bytes, sender: tuple[int, int], user: int = 0, *, udev_runs: bool, flags: int = 0) -> bool:
    """Report whether a listener accepts a message from this sender."""
    credentials = struct.pack("iII", 1, user, user)
    ancillary = [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, credentials)]
    with socket.socket() as sock:
        return hotplug._Events(sock, udev_runs).accepted(message, ancillary, flags, sender) is not None


def test_only_the_kernel_and_root_are_believed() -> None:
    kernel = b"add@/x\0" + encoded(PROPERTIES)
    assert heard(kernel, (0, 1), udev_runs=False)
    assert not heard(kernel, (4711, 1), udev_runs=False)
    assert not heard(kernel, (0, 0), udev_runs=False), "not said to the group but to us"
    assert not heard(kernel, (0, 1), udev_runs=False, flags=socket.MSG_TRUNC)
    message = udev(encoded(PROPERTIES))
    assert heard(message, (4711, 2), udev_runs=True)
    assert not heard(message, (4711, 2), 1000, udev_runs=True)
    assert not heard(kernel, (0, 1), udev_runs=True)
    assert not heard(b"nonsense", (4711, 2), udev_runs=True)


async def test_without_such_sockets_the_reason_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(errno.EPROTONOSUPPORT, os.strerror(errno.EPROTONOSUPPORT))

    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(HalError, match="device events"):
        async with LinuxHardware().hotplug():
            pass
