"""Messages to a service manager, received on real datagram sockets."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from support.systemd import ServiceManager


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(10)
        yield receiver


def environment(manager: socket.socket, **more: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": manager.getsockname(), **more}


async def test_lines_are_sent_in_one_message(manager: socket.socket) -> None:
    service = ServiceManager.from_environment(environment(manager))
    await service.send(READY="1", STATUS="9 resources\nMAINPID=1")
    assert manager.recv(1000) == b"READY=1\nSTATUS=9 resources"
    await service.send(STATUS="")
    assert manager.recv(1000) == b"STATUS="


async def test_a_name_in_the_abstract_namespace() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind("")
        receiver.settimeout(10)
        name = "@" + receiver.getsockname()[1:].decode()
        await ServiceManager.from_environment({"NOTIFY_SOCKET": name}).send(STOPPING="1")
        assert receiver.recv(1000) == b"STOPPING=1"


async def test_without_a_manager_no_message_is_sent() -> None:
    for address in ("", "notify", "vsock:2:1234"):
        service = ServiceManager.from_environment({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1000000"})
        assert (service.address, service.watchdog) == ("", 0.0)
        await service.send(READY="1")
        await service.keep_alive()


async def test_a_missing_socket_of_the_manager_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await ServiceManager(str(tmp_path / "gone")).send(READY="1")


@pytest.mark.parametrize(
    ("more", "seconds"),
    [
        ({"WATCHDOG_USEC": "3000000"}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, 0.0),
        ({"WATCHDOG_USEC": "soon"}, 0.0),
        ({}, 0.0),
    ],
)
def test_the_watchdog_applies_only_to_the_named_process(
    manager: socket.socket, more: dict[str, str], seconds: float
) -> None:
    assert ServiceManager.from_environment(environment(manager, **more)).watchdog == seconds


async def test_two_messages_in_each_watchdog_period(autojump_clock: trio.testing.MockClock) -> None:
    times: list[float] = []

    class Recorded(ServiceManager):
        async def send(self, **variables: str) -> None:
            assert variables == {"WATCHDOG": "1"}
            times.append(trio.current_time())

    begin = trio.current_time()
    with trio.move_on_after(9.5):
        await Recorded("/notify", 6.0).keep_alive()
    assert [time - begin for time in times] == pytest.approx([0, 3, 6, 9])
