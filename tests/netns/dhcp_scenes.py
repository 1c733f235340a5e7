"""Scenes of test_dhcp.py: run in a network namespace of their own; the other end of the cable is in a second one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from random import Random

import trio
import trio.testing

from netmgr.dhcp.client import ClientIdentity
from netmgr.dhcp.run import run_client, run_server
from netmgr.model.facts import AddressLease
from netmgr.model.plan import HOTSPOT_ADDRESSES
from netmgr.netlink.route import Kernel
from netmgr.netlink.socket import NetlinkRequests
from tests.netns.netlink_scenes import ip

LIMIT = 40.0
UDHCPD = """
interface peer
start 10.8.0.100
end 10.8.0.101
min_lease 12
option subnet 255.255.255.0
option router 10.8.0.1
option dns 10.8.0.1 9.9.9.9
option domain lab.example
option lease 12
lease_file {folder}/leases
pidfile {folder}/pid
"""


@contextmanager
def other_computer() -> Iterator[int]:
    """Yield the process id of a second network namespace, which is connected: `peer` there, `own` here."""
    process = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep 60"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        ip("link", "add", "own", "type", "veth", "peer", "name", "peer", "netns", str(process.pid))
        ip("link", "set", "own", "up")
        there(process.pid, "ip", "link", "set", "peer", "up")
        yield process.pid
        ip("link", "delete", "own")
    finally:
        process.kill()
        process.communicate()


def there(pid: int, *command: str) -> str:
    """Run a command on the other computer and return its output."""
    return subprocess.run(_there(pid, command), check=True, capture_output=True, text=True, timeout=LIMIT).stdout


def _there(pid: int, command: tuple[str, ...]) -> list[str]:
    return ["nsenter", f"--net=/proc/{pid}/ns/net", *command]


@contextmanager
def udhcpd(pid: int, folder: Path) -> Iterator[None]:
    """Run the DHCP server of busybox on the other computer."""
    (folder / "udhcpd.conf").write_text(UDHCPD.format(folder=folder))
    (folder / "leases").touch()
    there(pid, "ip", "address", "add", "10.8.0.1/24", "dev", "peer")
    process = subprocess.Popen(
        _there(pid, ("busybox", "udhcpd", "-f", str(folder / "udhcpd.conf"))), stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def identity() -> ClientIdentity:
    mac = ip("-brief", "link", "show", "own").split()[2]
    return ClientIdentity(mac=bytes.fromhex(mac.replace(":", "")), hostname="pi")


def test_a_lease_of_another_server_is_taken_renewed_and_taken_again(tmp_path: Path) -> None:
    leases: list[AddressLease | None] = []

    async def main(pid: int) -> None:
        send, receive = trio.open_memory_channel[AddressLease | None](10)
        with trio.fail_after(LIMIT), NetlinkRequests() as requests:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run_client, "own", identity(), None, send.send_nowait)
                lease = await receive.receive()
                assert lease is not None
                leases.append(lease)
                index = next(link.index for link in await Kernel(requests).links() if link.name == "own")
                await Kernel(requests).add_address(index, lease.address)
                leases.append(await receive.receive())
                nursery.cancel_scope.cancel()
            async with trio.open_nursery() as nursery:
                began = trio.current_time()
                nursery.start_soon(partial(run_client, in_use=lease), "own", identity(), lease, send.send_nowait)
                leases.append(await receive.receive())
                assert trio.current_time() - began < 1.0, "the remembered address needs one exchange"
                nursery.cancel_scope.cancel()

    with other_computer() as pid, udhcpd(pid, tmp_path):
        trio.run(main, pid)
    first, renewed, again = leases
    assert first is not None
    assert renewed is not None
    assert again is not None
    assert first.address in (IPv4Interface("10.8.0.100/24"), IPv4Interface("10.8.0.101/24"))
    assert (first.gateway, first.dns) == (IPv4Address("10.8.0.1"), (IPv4Address("10.8.0.1"), IPv4Address("9.9.9.9")))
    assert first.domains == ("lab.example",)
    assert first.expire == 12.0
    assert 5.0 < renewed.obtained - first.obtained < 8.0
    assert renewed.address == again.address == first.address


def test_a_lease_in_use_ends_if_no_server_confirms_it() -> None:
    async def main(pid: int) -> None:
        send, receive = trio.open_memory_channel[AddressLease | None](10)
        address = IPv4Address("10.8.0.1")
        lease = AddressLease(
            address=IPv4Interface("10.8.0.100/24"), gateway=address, server=address,
            obtained=trio.current_time(), renew=60.0, rebind=90.0, expire=120.0,
        )  # fmt: skip
        with trio.fail_after(LIMIT):
            async with trio.open_nursery() as nursery:
                began = trio.current_time()
                nursery.start_soon(partial(run_client, in_use=lease), "own", identity(), lease, send.send_nowait)
                assert await receive.receive() is None
                assert trio.current_time() - began > 3.0, "it is used while the server is asked"
                nursery.cancel_scope.cancel()

    with other_computer() as pid:
        trio.run(main, pid)


def test_another_client_gets_an_address_of_the_hotspot(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text('#!/bin/sh\necho "$1 $ip/$mask $router $dns $lease"\n')
    script.chmod(0o755)

    async def main(pid: int) -> str:
        ip("address", "add", str(HOTSPOT_ADDRESSES[0]), "dev", "own")
        with trio.fail_after(LIMIT):
            async with trio.open_nursery() as nursery:
                await nursery.start(run_server, "own", HOTSPOT_ADDRESSES[0])
                command = ("busybox", "udhcpc", "-i", "peer", "-n", "-q", "-f", "-s", str(script))
                done = await trio.run_process(_there(pid, command), capture_stdout=True, capture_stderr=True)
                nursery.cancel_scope.cancel()
        return done.stdout.decode()

    with other_computer() as pid:
        assert "bound 10.42.0.10/24 10.42.0.1 10.42.0.1 600" in trio.run(main, pid)


def test_nothing_is_granted_without_a_server_and_noise_is_ignored() -> None:
    async def main(pid: int) -> None:
        there(pid, "ip", "address", "add", "10.8.0.1/24", "dev", "peer")
        noise = (
            "import os, socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
            "s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1); s.bind(('10.8.0.1', 67)); "
            "[s.sendto(os.urandom(n), ('255.255.255.255', 68)) for n in range(1, 1400, 7)]"
        )
        leases: list[AddressLease | None] = []
        with trio.fail_after(LIMIT):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(run_client, chance=Random(1).random), "own", identity(), None, leases.append)
                await trio.run_process(_there(pid, ("python3", "-c", noise)))
                await trio.testing.wait_all_tasks_blocked(0.1)
                nursery.cancel_scope.cancel()
        assert leases == []

    with other_computer() as pid:
        trio.run(main, pid)
