"""-network-check on the real process, with test servers on loopback."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio

from engine.options import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from tests.e2e.options.support import motor
from tests.e2e.server.process import server

QUIET: dict[str, Any] = {
    "dns": [],
    "resolve": [],
    "stun": [],
    "stun_tcp": [],
    "ping": [],
    "probes": 3,
    "probe_period_s": 0.05,
}


def check(folder: Path, targets: dict[str, Any] | str, *options: str) -> subprocess.CompletedProcess[str]:
    file = folder / "targets.json"
    file.write_text(targets if isinstance(targets, str) else json.dumps({**QUIET, **targets}))
    return subprocess.run(
        [sys.executable, "-m", "runtime.server.cli", "-network-check", *options],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "MACHINE_NETWORK_CHECK": str(file)},
    )


def stun_answer(request: bytes, address: tuple[str, int]) -> bytes:
    """Return an answer as in RFC 8489, section 14.2, without a library."""
    port = address[1] ^ 0x2112
    host = struct.unpack(">I", socket.inet_aton(address[0]))[0] ^ 0x2112A442
    attribute = struct.pack(">HHBBHI", 0x0020, 8, 0, 1, port, host)
    return struct.pack(">HHI", 0x0101, len(attribute), 0x2112A442) + request[8:20] + attribute


def dns_answer(query: bytes) -> bytes:
    """Return an answer over TCP with one address for any query."""
    question = query[14:]
    record = struct.pack(">HHHIH4s", 0xC00C, 1, 1, 60, 4, socket.inet_aton("192.0.2.53"))
    message = query[2:4] + struct.pack(">5H", 0x8180, 1, 1, 0, 0) + question + record
    return struct.pack(">H", len(message)) + message


@pytest.fixture
def stand_ins() -> Iterator[dict[str, Any]]:
    """Run a resolver and a STUN server with TCP, and two STUN servers with UDP, on loopback."""
    resolver = socket.create_server(("127.0.0.1", 0))
    relay = socket.create_server(("127.0.0.1", 0))
    datagrams = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for datagram in datagrams:
        datagram.bind(("127.0.0.1", 0))

    def tcp(listener: socket.socket, size: int, answer: Any) -> None:
        while True:
            try:
                connection, address = listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(answer(connection.recv(size), address))

    def udp(sock: socket.socket) -> None:
        while True:
            try:
                request, address = sock.recvfrom(2048)
            except OSError:
                return
            if not request:
                return
            sock.sendto(stun_answer(request, address), address)

    threads = [
        threading.Thread(target=tcp, args=(resolver, 512, lambda query, _: dns_answer(query))),
        threading.Thread(target=tcp, args=(relay, 512, stun_answer)),
        *(threading.Thread(target=udp, args=(item,)) for item in datagrams),
    ]
    for thread in threads:
        thread.start()
    try:
        yield {
            "dns": [f"127.0.0.1:{resolver.getsockname()[1]}"],
            "resolve": ["localhost"],
            "stun": [f"127.0.0.1:{element.getsockname()[1]}" for element in datagrams],
            "stun_tcp": [f"127.0.0.1:{relay.getsockname()[1]}"],
            "ping": ["127.0.0.1"],
        }
    finally:
        for listener in (resolver, relay):
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for datagram in datagrams:
            with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as last:
                last.sendto(b"", datagram.getsockname())
        for thread in threads:
            thread.join(10)
        for datagram in datagrams:
            datagram.close()


def test_a_working_network(stand_ins: dict[str, Any], tmp_path: Path) -> None:
    done = check(tmp_path, stand_ins)
    assert done.returncode == EXIT_OK, done.stdout + done.stderr
    assert "The network works." in done.stdout
    assert "one.one.one.one: 192.0.2.53" in done.stdout
    assert done.stdout.count("seen as 127.0.0.1:") == 3
    assert "0 of 3 lost" in done.stdout or "is not allowed to send ICMP" in done.stdout


def test_every_failure_has_a_remedy(tmp_path: Path) -> None:
    closed = "127.0.0.1:9"  # discard: nothing listens there
    done = check(tmp_path, {"dns": [closed], "resolve": ["x" * 64], "stun": [closed], "stun_tcp": [closed]})
    assert done.returncode == EXIT_FAILED
    for words in ("dns: check cable", "resolve: the system's resolver", "stun: a firewall", "stun-tcp: a firewall"):
        assert words in done.stdout
    assert "Connection refused" in done.stdout
    assert "no answer within 5 s" in done.stdout


def test_one_of_several_servers_may_be_unreachable(stand_ins: dict[str, Any], tmp_path: Path) -> None:
    done = check(tmp_path, {"dns": [*stand_ins["dns"], "127.0.0.1:9"]})
    assert done.returncode == EXIT_OK
    assert "failed" in done.stdout


def test_invalid_targets_are_reported(tmp_path: Path) -> None:
    done = check(tmp_path, '{"dns": "everywhere"}')
    assert (done.returncode, "MACHINE_NETWORK_CHECK" in done.stderr) == (EXIT_USAGE, True)


@pytest.mark.parametrize("managed", [False, True])
async def test_only_machines_with_a_cloud_check_in_the_background(managed: bool, tmp_path: Path) -> None:
    targets = tmp_path / "targets.json"
    targets.write_text(json.dumps({**QUIET, "dns": ["127.0.0.1:9"]}))
    cloud = {"cloud": {"id": "part", "secret": "s", "app_address": "http://0.0.0.0:9"}} if managed else {}
    document = {"components": [motor("m")], **cloud}
    environment = {"MACHINE_NETWORK_CHECK": str(targets)}
    async with server(tmp_path, document, "-debug", running=True, env=environment) as running:
        with trio.fail_after(30):
            while managed and "check cable" not in running.log():  # noqa: ASYNC110 - the log of another process
                await trio.sleep(0.02)
        assert await running.stop() == 0
        assert ("rdk.network-checks" in running.log()) is managed
        assert ("internal/network-check" in running.log()) is managed


pytestmark = pytest.mark.slow
