"""Name servers of the system."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from netmgr.dns.resolver import MARK, Resolver
from netmgr.owners.bus import Bus
from schema.errors import MachineError

ETH0, WLAN0 = ("192.168.1.1",), ("192.168.7.1", "9.9.9.9")
BY_HAND = "# by hand\nsearch plant.example\nnameserver 10.0.0.53\noptions edns0\n"


class FakeBus:
    """Records calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    async def call(
        self, service: str, path: str, interface: str, method: str, signature: str = "", *arguments: object
    ) -> tuple[Any, ...]:
        self.calls.append((method, arguments))
        return ()


async def inline(function: Callable[[], Any]) -> Any:
    return function()


def resolver(file: Path, bus: FakeBus | None = None) -> Resolver:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Bus]:
        assert bus is not None
        yield bus

    def index_of(name: str) -> int:
        indexes = {"eth0": 2, "wlan0": 3}
        if name not in indexes:
            raise OSError("no such interface")
        return indexes[name]

    return Resolver(inline, file=file, bus=opened, index_of=index_of)


async def test_the_file_is_written_and_the_former_one_restored(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    file.write_text(BY_HAND)
    names = resolver(file)
    await names.set({"eth0": ETH0}, {"eth0": ("lab.example",)})
    assert file.read_text() == (
        f"{MARK}{file}.before-machine-agent.\nsearch lab.example plant.example\n"
        "nameserver 192.168.1.1\nnameserver 10.0.0.53\noptions edns0\n"
    )
    await resolver(file).set({"eth0": ETH0, "wlan0": WLAN0}, {})  # after a restart of the agent
    assert file.read_text().count("nameserver") == 3
    assert "10.0.0.53" not in file.read_text(), "the C library uses three"
    await resolver(file).give_back()
    assert file.read_text() == BY_HAND
    assert os.listdir(tmp_path) == ["resolv.conf"]


async def test_nothing_is_touched_before_there_is_something_to_set(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    await resolver(file).set({}, {})
    assert not file.exists()
    file.write_text(BY_HAND)
    await resolver(file).give_back()
    assert file.read_text() == BY_HAND


async def test_a_link_to_the_file_of_another_program_is_not_followed(tmp_path: Path) -> None:
    target, file = tmp_path / "stub", tmp_path / "resolv.conf"
    target.write_text(BY_HAND)
    file.symlink_to(target)
    with pytest.raises(MachineError, match="another program sets the name servers"):
        await resolver(file).set({"eth0": ETH0}, {})
    assert target.read_text() == BY_HAND


async def test_systemd_resolved_is_asked_where_it_answers_for_the_system(tmp_path: Path) -> None:
    file, bus = tmp_path / "resolv.conf", FakeBus()
    file.symlink_to("../run/systemd/resolve/stub-resolv.conf")
    names = resolver(file, bus)
    await names.set({"eth0": ETH0, "gone": ETH0}, {"eth0": ("lab.example",)})
    assert bus.calls == [
        ("SetLinkDNS", (2, [(socket.AF_INET, b"\xc0\xa8\x01\x01")])),
        ("SetLinkDomains", (2, [("lab.example", False)])),
        ("SetLinkDefaultRoute", (2, True)),
    ]
    bus.calls.clear()
    await names.set({"wlan0": WLAN0}, {})
    assert bus.calls[-1] == ("RevertLink", (2,))
    bus.calls.clear()
    await names.give_back()
    assert bus.calls == [("RevertLink", (3,))]
