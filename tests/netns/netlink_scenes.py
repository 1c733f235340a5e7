"""Scenes of test_netlink.py: run in a network namespace of their own, with nothing but loopback in it."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Interface

import pytest
import trio
import trio.testing

from netmgr.model.facts import KernelRoute, NetworkLink
from netmgr.model.plan import PROTOCOL, PlannedRoute
from netmgr.netlink import advertisements
from netmgr.netlink.route import Kernel
from netmgr.netlink.socket import KernelError, NetlinkRequests
from netmgr.netlink.watch import NetlinkChanges
from schema.errors import ErrorKind

ADDRESS = IPv4Interface("10.9.0.1/24")
EVERYTHING = IPv4Network("0.0.0.0/0")
DEFAULT = PlannedRoute(destination=EVERYTHING, gateway=IPv4Address("10.9.0.2"), metric=100)
LIMIT = 20.0
_numbers = itertools.count()


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=10).stdout


@contextmanager
def cable() -> Iterator[str]:
    """Create a pair of links, both up; yield the name of one."""
    name = f"v{next(_numbers)}"
    ip("link", "add", name, "type", "veth", "peer", "name", f"{name}p")
    for link in (name, f"{name}p"):
        ip("link", "set", link, "addrgenmode", "none")
        ip("link", "set", link, "up")
    try:
        yield name
    finally:
        ip("link", "delete", name)


def scene(function: Callable[[Kernel, str], Awaitable[None]]) -> Callable[[], None]:
    @wraps(function)
    def run() -> None:
        async def main() -> None:
            with trio.fail_after(LIMIT), NetlinkRequests() as requests, cable() as name:
                await function(Kernel(requests), name)

        trio.run(main)

    del run.__wrapped__  # type: ignore[attr-defined]  # pytest would read the arguments of the function
    return run


async def link(kernel: Kernel, name: str) -> NetworkLink:
    return next(link for link in await kernel.links() if link.name == name)


async def routes(kernel: Kernel, name: str) -> list[KernelRoute]:
    return [route for route in await kernel.routes() if route.interface == name and route.protocol == PROTOCOL]


@scene
async def test_links_are_read(kernel: Kernel, name: str) -> None:
    read = await link(kernel, name)
    assert (read.up, read.carrier, read.kind, read.index) == (True, True, "other", socket.if_nametoindex(name))
    assert f"link/ether {read.mac} " in ip("link", "show", name)
    ip("link", "set", f"{name}p", "down")
    assert not (await link(kernel, name)).carrier
    assert (await link(kernel, "lo")).kind == "other"


@scene
async def test_a_link_is_switched(kernel: Kernel, name: str) -> None:
    index = (await link(kernel, name)).index
    await kernel.set_up(index, up=False)
    assert not (await link(kernel, name)).up
    await kernel.set_up(index, mtu=1400)
    assert (await link(kernel, name)).up
    assert "mtu 1400" in ip("link", "show", name)


@scene
async def test_addresses_are_added_and_deleted_repeatedly(kernel: Kernel, name: str) -> None:
    index = (await link(kernel, name)).index
    for address in (ADDRESS, IPv6Interface("fd00::1/64"), IPv4Interface("10.9.1.1/31")):
        await kernel.add_address(index, address)
        await kernel.add_address(index, address)
        assert [entry.value for entry in (await link(kernel, name)).addresses] == [address]
        await kernel.delete_address(index, address)
        await kernel.delete_address(index, address)
    assert (await link(kernel, name)).addresses == ()


@scene
async def test_an_address_with_a_lifetime_is_dynamic(kernel: Kernel, name: str) -> None:
    index = (await link(kernel, name)).index
    await kernel.add_address(index, ADDRESS, lifetime=600)
    (entry,) = (await link(kernel, name)).addresses
    assert entry.dynamic
    assert "valid_lft 600sec" in ip("address", "show", name)
    await kernel.add_address(index, ADDRESS)
    (entry,) = (await link(kernel, name)).addresses
    assert not entry.dynamic


@scene
async def test_routes_are_added_replaced_and_deleted(kernel: Kernel, name: str) -> None:
    index = (await link(kernel, name)).index
    await kernel.add_address(index, ADDRESS)
    other = PlannedRoute(destination=EVERYTHING, gateway=IPv4Address("10.9.0.3"), metric=100)
    second = PlannedRoute(destination=EVERYTHING, gateway=IPv4Address("10.9.0.3"), metric=600)
    direct = PlannedRoute(destination=IPv4Network("10.10.0.0/16"), gateway=None, metric=5)
    for route in (DEFAULT, DEFAULT, other, second, direct):
        await kernel.add_route(index, route)
    assert {(route.destination, route.gateway, route.metric) for route in await routes(kernel, name)} == {
        (route.destination, route.gateway, route.metric) for route in (other, second, direct)
    }
    for route in (other, other, second, direct):
        await kernel.delete_route(index, route)
    assert await routes(kernel, name) == []


@scene
async def test_routes_of_other_programs_stay(kernel: Kernel, name: str) -> None:
    index = (await link(kernel, name)).index
    await kernel.add_address(index, ADDRESS)
    ip("route", "add", "default", "via", "10.9.0.2", "metric", "100")
    await kernel.delete_route(index, DEFAULT)
    assert "default via 10.9.0.2" in ip("route", "show")


@scene
async def test_the_kernel_says_why_it_refuses(kernel: Kernel, name: str) -> None:
    index = (await link(kernel, name)).index
    with pytest.raises(KernelError, match="Nexthop has invalid gateway") as caught:
        await kernel.add_route(index, DEFAULT)
    assert caught.value.kind is ErrorKind.PRECONDITION
    with pytest.raises(KernelError) as missing:
        await kernel.set_up(9999)
    assert missing.value.kind is ErrorKind.NOT_FOUND


@scene
async def test_a_cancelled_request_does_not_disturb_the_next(kernel: Kernel, name: str) -> None:
    for _ in range(20):
        with trio.CancelScope() as scope:
            scope.cancel()
            await kernel.links()
        with trio.move_on_after(0):
            await kernel.links()
        assert (await link(kernel, name)).name == name


@scene
async def test_many_tasks_share_a_socket(kernel: Kernel, name: str) -> None:
    index = (await link(kernel, name)).index
    async with trio.open_nursery() as nursery:
        for number in range(1, 51):
            nursery.start_soon(kernel.add_address, index, IPv4Interface(f"10.9.2.{number}/32"))
            nursery.start_soon(kernel.links)
    assert len((await link(kernel, name)).addresses) == 50


@scene
async def test_messages_of_other_processes_are_ignored(kernel: Kernel, name: str) -> None:
    target = kernel._requests._socket.getsockname()[0]
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as other:
        forged = (20).to_bytes(4, "little") + b"\x02\x00\x00\x00" + (2).to_bytes(4, "little") + bytes(8)
        try:
            other.sendto(forged, (target, 0))
        except PermissionError:
            pass  # this kernel does not even deliver it
    assert (await link(kernel, name)).name == name


@scene
async def test_changes_are_noticed(kernel: Kernel, name: str) -> None:
    with NetlinkChanges() as changes:
        for words in (
            ("address", "add", "10.9.3.1/24", "dev", name),
            ("route", "add", "10.11.0.0/16", "dev", name),
            ("link", "set", f"{name}p", "down"),
            ("address", "add", "fd01::1/64", "dev", name),
        ):
            with trio.fail_after(30):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(changes.wait)
                    await trio.testing.wait_all_tasks_blocked()
                    ip(*words)
        with trio.move_on_after(0.05) as quiet:
            await changes.wait()
    assert quiet.cancelled_caught


@scene
async def test_dropped_notifications_count_as_a_change(kernel: Kernel, name: str) -> None:
    index = (await link(kernel, name)).index
    with NetlinkChanges() as changes:
        changes._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        for number in range(1, 101):
            await kernel.add_address(index, IPv4Interface(f"10.9.4.{number}/32"))
        with trio.fail_after(30):
            await changes.wait()
        with trio.move_on_after(0.05) as quiet:
            await changes.wait()
    assert quiet.cancelled_caught
    assert len((await link(kernel, name)).addresses) == 100


@scene
async def test_router_advertisements_get_their_metric(kernel: Kernel, name: str) -> None:
    folder = advertisements.SETTINGS / name
    advertisements.accept(name, 600)
    assert (folder / "accept_ra").read_text() == "2\n"
    if (folder / advertisements.METRIC).exists():
        assert (folder / advertisements.METRIC).read_text() == "600\n"
    advertisements.accept(name, None)
    assert (folder / "accept_ra").read_text() == "0\n"
    advertisements.accept("no-such-link", 600)


@scene
async def test_no_descriptor_is_left(kernel: Kernel, name: str) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        with NetlinkRequests() as requests, NetlinkChanges():
            await Kernel(requests).routes()
    assert len(os.listdir("/proc/self/fd")) == before
