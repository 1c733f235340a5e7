"""Scenes for test_mdns.py, run in a network namespace. Packets are parsed by dnspython, not by our own codec."""

from __future__ import annotations

import json
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import dns.flags
import dns.message
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import pytest

from tests.e2e.harness import Server
from tests.netns.lan import CABLE, HERE, THERE, ip, lan

GROUP, PORT = "224.0.0.251", 5353
SERVICE = "_rpc._tcp.local."
NAME = "rover.example"
LIMIT = 30.0  # seconds
IP_RECVTTL = 12  # linux/in.h

Packet = tuple[dns.message.Message, tuple[str, int]]


sockets = ExitStack()


@pytest.fixture(autouse=True)
def _sockets_are_closed() -> Iterator[None]:
    with sockets:
        yield


class Listener:
    """A member of the group on one interface."""

    def __init__(self, interface: str) -> None:
        self.sock = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        member = struct.pack("=4s4si", socket.inet_aton(GROUP), bytes(4), socket.if_nametoindex(interface))
        self.sock.setsockopt(socket.IPPROTO_IP, 49, 0)  # IP_MULTICAST_ALL
        self.sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        self.sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, member)
        self.sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
        self.sock.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
        self.sock.bind((GROUP, PORT))
        self.packets: list[Packet] = []
        self.ttls: set[int] = set()

    def next(self, limit: float = LIMIT) -> Packet | None:
        """Return the next packet; None if none arrives within `limit` seconds."""
        self.sock.settimeout(limit)
        try:
            data, ancillary, _, address = self.sock.recvmsg(9000, 64)
        except TimeoutError:
            return None
        self.ttls |= {struct.unpack("=i", value)[0] for _, kind, value in ancillary if kind == socket.IP_TTL}
        packet = (read(data), address)
        self.packets.append(packet)
        return packet

    def until(self, expected: Callable[[dns.message.Message], bool], limit: float = LIMIT) -> Packet:
        """Return the first packet that satisfies `wanted`."""
        end = time.monotonic() + limit
        while (left := end - time.monotonic()) > 0:
            packet = self.next(left)
            if packet is not None and expected(packet[0]):
                return packet
        raise AssertionError([str(packet[0]) for packet in self.packets])

    def ask(self, question: dns.message.Message) -> None:
        """Send a query to the group."""
        self.sock.sendto(question.to_wire(), (GROUP, PORT))


def read(data: bytes) -> dns.message.Message:
    # the top bit of the class means cache-flush, or a request for unicast: dnspython keeps it in the class
    return dns.message.from_wire(data, one_rr_per_rrset=True)


def query(name: str, kind: str, *, unicast: bool = False) -> dns.message.Message:
    message = dns.message.Message(id=0)
    message.flags = dns.flags.Flag(0)
    cls = dns.rdataclass.RdataClass(0x8001 if unicast else 1)
    message.question.append(dns.rrset.RRset(dns.name.from_text(name), cls, dns.rdatatype.from_text(kind)))
    return message


def is_response(message: dns.message.Message) -> bool:
    return bool(message.flags & dns.flags.QR)


def says(message: dns.message.Message, kind: str, text: str) -> bool:
    return is_response(message) and any(text in line for line in lines(message, kind))


def lines(message: dns.message.Message, kind: str) -> list[str]:
    """Return the records of a type as text: name, seconds, data."""
    rdtype = dns.rdatatype.from_text(kind)
    return [
        f"{rrset.name} {rrset.ttl} {data.to_text() if rrset.rdclass == 1 else data_of(rrset)}"
        for rrset in (*message.answer, *message.additional)
        if rrset.rdtype == rdtype
        for data in rrset
    ]


def data_of(rrset: dns.rrset.RRset) -> str:
    """Parse the data again: dnspython only parses data of the class Internet."""
    wire = next(iter(rrset)).to_wire()
    return dns.rdata.from_wire(1, rrset.rdtype, wire, 0, len(wire)).to_text()


def classes(message: dns.message.Message) -> dict[str, int]:
    return {dns.rdatatype.to_text(rrset.rdtype): int(rrset.rdclass) for rrset in message.answer}


@contextmanager
def served(folder: Path, bind: str = "0.0.0.0:0", *options: str, fqdn: str = NAME) -> Iterator[Server]:
    folder.mkdir(exist_ok=True)
    with Server({"network": {"bind_address": bind, "fqdn": fqdn}}, folder, *options) as server:
        yield server


def test_probed_announced_answered_and_taken_back(tmp_path: Path) -> None:
    """Check the content of packets; tests/unit/runtime/parts/mdns/test_announcer.py checks their times."""
    with lan() as other:
        with other.there():
            listener = Listener(CABLE)
        with served(tmp_path) as server:
            listener.until(lambda m: says(m, "A", HERE))
            listener.until(lambda m: says(m, "A", HERE))
            probes = [packet for packet in listener.packets if not is_response(packet[0])]
            assert len(probes) == 3
            assert all(packet[1] == (HERE, PORT) for packet in listener.packets)
            assert listener.ttls == {255}
            probe = probes[0][0]
            assert {int(item.rdclass) for item in probe.question} == {0x8001}
            assert {str(element.name) for element in probe.authority} == {
                "rover\\.example._rpc._tcp.local.", "rover-example._rpc._tcp.local.",
                "rover-example.local.", "rover.example.local.",
            }  # fmt: skip
            first, second = (packet for packet in listener.packets if is_response(packet[0]))
            assert first[0].answer == second[0].answer
            message = first[0]
            assert classes(message) == {"PTR": 1, "SRV": 0x8001, "TXT": 0x8001, "A": 0x8001}
            assert f"_rpc._tcp.local. 4500 rover-example.{SERVICE}" in lines(message, "PTR")
            assert f"rover-example.{SERVICE} 120 0 0 {server.port} rover-example.local." in lines(message, "SRV")
            assert f'rover-example.{SERVICE} 4500 "grpc"' in lines(message, "TXT")
            assert f"rover.example.local. 120 {HERE}" in lines(message, "A")

            time.sleep(1.1)  # records that were multicast less than a second ago are not repeated
            listener.ask(query(SERVICE, "PTR"))
            answer = listener.until(is_response)[0]
            assert len(lines(answer, "PTR")) == 2
            assert lines(answer, "SRV")
            assert lines(answer, "A")
            assert answer.id == 0
            assert not answer.question

            time.sleep(1.1)
            result = query(SERVICE, "PTR")
            result.answer.append(dns.rrset.from_text(SERVICE, 4000, "IN", "PTR", f"rover-example.{SERVICE}"))
            result.answer.append(dns.rrset.from_text(SERVICE, 100, "IN", "PTR", f"rover\\.example.{SERVICE}"))
            listener.ask(result)
            answer = listener.until(is_response)[0]
            assert [line.split()[-1] for line in lines(answer, "PTR")] == [f"rover\\.example.{SERVICE}"]

            time.sleep(1.1)
            listener.ask(query("rover-example.local.", "AAAA"))
            answer = listener.until(is_response)[0]
            assert [line.split()[2:] for line in lines(answer, "NSEC")] == [["rover-example.local.", "A"]]

            assert server.process is not None
            server.process.send_signal(signal.SIGTERM)
            goodbye = listener.until(is_response)[0]
            assert {entry.ttl for entry in goodbye.answer} == {0}
            assert lines(goodbye, "PTR")


def test_ordinary_resolvers_are_answered(tmp_path: Path) -> None:
    with lan() as other:
        with other.there():
            listener = Listener(CABLE)
            asker = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            asker.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(THERE))
        with served(tmp_path) as server:
            listener.until(lambda m: says(m, "A", HERE))
            question = dns.message.make_query(SERVICE, "PTR")
            asker.settimeout(LIMIT)
            asker.sendto(question.to_wire(), (GROUP, PORT))
            reply = read(asker.recv(9000))
            assert reply.id == question.id
            assert [str(item.name) for item in reply.question] == [SERVICE]
            assert {element.ttl for element in (*reply.answer, *reply.additional)} == {10}
            assert f"rover-example.{SERVICE} 10 0 0 {server.port} rover-example.local." in lines(reply, "SRV")


def test_garbage_does_not_stop_it(tmp_path: Path) -> None:
    with lan() as other:
        with other.there():
            listener = Listener(CABLE)
        with served(tmp_path) as server:
            listener.until(lambda m: says(m, "A", HERE))
            for data in (b"", b"\0" * 11, b"\xff" * 512, bytes(12) + b"\xc0\x0c" * 100, b"\0\0\0\0\0\1" + bytes(6)):
                listener.sock.sendto(data, (GROUP, PORT))
            time.sleep(1.1)
            listener.ask(query(SERVICE, "PTR"))
            listener.until(lambda m: says(m, "PTR", "rover-example"))
            assert "Traceback" not in server.log()


def test_a_server_on_loopback_is_announced_to_this_computer_only(tmp_path: Path) -> None:
    with lan() as other:
        with other.there():
            outside = Listener(CABLE)
        inside, cable = Listener("lo"), Listener(CABLE)
        with served(tmp_path, "localhost:0"):
            message = inside.until(lambda m: says(m, "A", "127.0.0.1"))[0]
            assert {line.split()[-1] for line in lines(message, "A")} == {"127.0.0.1"}
            assert not lines(message, "AAAA")
            result = discover([])
            assert [(item["name"], item["interface"]) for item in result] == [(NAME, "lo")]
            assert result[0]["addresses"] == ["127.0.0.1"]
            inside.packets.clear()
        inside.until(lambda m: is_response(m) and all(element.ttl == 0 for element in m.answer))
        assert outside.next(0.1) is None or not any(says(p[0], "PTR", "rover") for p in outside.packets)
        assert all(not says(packet[0], "PTR", "rover") for packet in (*outside.packets, *cable.packets))


def test_a_server_on_one_address_is_announced_there(tmp_path: Path) -> None:
    with lan() as other:
        ip("link", "add", "other0", "type", "veth", "peer", "name", "other1")
        ip("address", "add", "10.99.0.1/24", "dev", "other0")
        for name in ("other0", "other1"):
            ip("link", "set", name, "up")
        with other.there():
            listener = Listener(CABLE)
        with served(tmp_path, f"{HERE}:0") as server:
            message = listener.until(lambda m: says(m, "A", HERE))[0]
            assert {line.split()[-1] for line in lines(message, "A")} == {HERE}
            assert "interface=other0" not in server.log()


def test_disabled(tmp_path: Path) -> None:
    with lan() as other:
        with other.there():
            listener = Listener(CABLE)
        with served(tmp_path, "0.0.0.0:0", "-disable-mdns") as server:
            server.wait_running()
            assert listener.next(2.0) is None
            assert "not built" not in server.log()


def test_addresses_that_come_and_interfaces_that_go(tmp_path: Path) -> None:
    with lan() as other:
        with other.there():
            listener = Listener(CABLE)
        with served(tmp_path) as server:
            listener.until(lambda m: says(m, "A", HERE))
            ip("address", "add", "10.77.0.9/24", "dev", CABLE)
            message = listener.until(lambda m: says(m, "A", "10.77.0.9") and bool(m.answer[0].ttl))[0]
            assert {line.split()[-1] for line in lines(message, "A")} == {HERE, "10.77.0.9"}
            ip("link", "set", CABLE, "down")
            ip("link", "set", CABLE, "up")
            listener.packets.clear()
            listener.until(lambda m: says(m, "A", HERE) and bool(m.answer[0].ttl))
            assert server.command("status").returncode == 0


def test_two_machines_of_one_name(tmp_path: Path) -> None:
    with lan() as other, served(tmp_path / "here") as server:
        with other.there():
            listener = Listener(CABLE)
        listener.until(lambda m: says(m, "A", HERE))
        outside = Listener(CABLE)
        (tmp_path / "there").mkdir()
        second = Server({"network": {"bind_address": "0.0.0.0:0", "fqdn": NAME}}, tmp_path / "there")
        with ExitStack() as stack:
            with other.there():
                stack.enter_context(second)
            message = outside.until(lambda m: says(m, "A", THERE))[0]
            assert "rover-example-2.local." in {line.split()[0] for line in lines(message, "A")}
            values = {str(item["name"]): str(item["addresses"]) for item in discover([])}
            assert HERE in values[NAME]
            assert THERE in values[f"{NAME}-2"]
            assert "somebody else" not in server.log()


def test_machine_discover(tmp_path: Path) -> None:
    with lan() as other:
        no_answer = subprocess.run(
            machine(other.run_there(), "--wait", "0.5"), capture_output=True, text=True, timeout=30
        )
        assert "no machine answered" in no_answer.stdout
        with other.there():
            listener = Listener(CABLE)
        with served(tmp_path) as server:
            listener.until(lambda m: says(m, "A", HERE))
            result = discover(other.run_there())
            assert [(item["name"], item["port"], item["interface"]) for item in result] == [(NAME, server.port, CABLE)]
            assert result[0]["addresses"][0] == HERE
            shown = subprocess.run(machine(other.run_there()), capture_output=True, text=True, timeout=30).stdout
            assert f"{HERE}:{server.port}" in shown
            status = subprocess.run(
                other.run_there(str(program()), "status", "--address", f"{HERE}:{server.port}"), timeout=30
            )
            assert status.returncode == 0


def test_a_port_that_is_taken_is_a_warning(tmp_path: Path) -> None:
    with lan() as other:
        alone = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        alone.bind(("0.0.0.0", PORT))
        with other.there():
            listener = Listener(CABLE)
        with served(tmp_path) as server:
            server.wait_running()
            end = time.monotonic() + LIMIT
            while f"not announced on {CABLE}" not in server.log() and time.monotonic() < end:
                time.sleep(0.1)
            assert "Address already in use" in server.log()
            assert server.command("status").returncode == 0
            alone.close()
            ip("address", "add", "10.77.0.9/24", "dev", CABLE)  # the network has changed, so it retries
            listener.until(lambda m: says(m, "A", HERE))


def test_ipv6_alone(tmp_path: Path) -> None:
    with lan() as other:
        for prefix, address in (([], "fd77::1/64"), (other.run_there(), "fd77::2/64")):
            ip("-4", "address", "flush", "dev", CABLE, prefix=prefix)
            ip("-6", "address", "add", address, "dev", CABLE, "nodad", prefix=prefix)
        with served(tmp_path, "[::]:0") as server:
            end = time.monotonic() + LIMIT
            while "announced by multicast DNS" not in server.log() and time.monotonic() < end:
                time.sleep(0.1)
            result = discover(other.run_there())
            assert [(item["name"], item["port"], item["addresses"]) for item in result] == [
                (NAME, server.port, ["fd77::1"])
            ]


def program() -> Path:
    return Path(sys.executable).with_name("machine")


def machine(prefix: list[str], *options: str) -> list[str]:
    return [*prefix, str(program()), "discover", *options]


def discover(prefix: list[str]) -> list[dict[str, object]]:
    done = subprocess.run(machine(prefix, "--json"), capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    machines: list[dict[str, object]] = json.loads(done.stdout)
    return machines
