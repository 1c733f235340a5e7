"""Tunnels of a real server: published stub, `machine` command, 100 MB, descriptors, and memory with a slow reader."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from grpclib import GRPCError, Status
from grpclib.client import Channel
from grpclib.exceptions import StreamTerminatedError
from viam.gen.robot.v1.robot_grpc import RobotServiceStub
from viam.proto.robot import ListTunnelsRequest, TunnelRequest

from tests.e2e.harness import Server

MB = 1_000_000
BLOCK = os.urandom(MB)


class Listening:
    """A TCP server on a free port; `serve` runs in a thread for each connection."""

    def __init__(self, serve: object) -> None:
        self.serve = serve
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.sock.getsockname()[1])
        self.thread = threading.Thread(target=self._accept, daemon=True)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_connection, args=(connection,), daemon=True).start()

    def _serve_connection(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            self.serve(connection)  # type: ignore[operator]

    def __enter__(self) -> Listening:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


def digest_at_end(connection: socket.socket) -> None:
    """Reply with the count and digest of all received bytes after the sender has closed its side."""
    count, digest = 0, hashlib.sha256()
    while data := connection.recv(1 << 16):
        count += len(data)
        digest.update(data)
    connection.sendall(f"{count} {digest.hexdigest()}".encode())


def hundred_megabytes(connection: socket.socket) -> None:
    for _ in range(100):
        connection.sendall(BLOCK)


def document(*ports: int) -> dict[str, object]:
    return {"network": {"traffic_tunnel_endpoints": [{"port": port} for port in ports]}}


@contextmanager
def command(server: Server, *pairs: str) -> Iterator[int]:
    """Run `machine tunnel PAIRS`; yield the first local port."""
    program = str(Path(sys.executable).with_name("machine"))
    process = subprocess.Popen(
        [program, "tunnel", *pairs, "--address", server.address], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield int(line.split()[0].rpartition(":")[2])
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        process.stdout.close()


def received(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def descriptors(server: Server) -> int:
    assert server.process is not None
    return psutil.Process(server.process.pid).num_fds()


def settled_descriptors(server: Server, expected: int) -> int:
    """Return the stable number of descriptors, within 30 s; the server notices a close later than the client."""
    end = time.monotonic() + 30
    while (result := descriptors(server)) > expected and time.monotonic() < end:
        time.sleep(0.05)
    return result


def test_a_hundred_megabytes_each_way_leave_nothing_open(tmp_path: Path) -> None:
    with Listening(digest_at_end) as sink, Listening(hundred_megabytes) as source:
        with Server(document(sink.port, source.port), tmp_path, "-allow-open-shell") as server:
            server.wait_running()
            with command(server, f"0:{sink.port}") as port:
                with closing(socket.create_connection(("127.0.0.1", port))) as warm:
                    warm.shutdown(socket.SHUT_WR)
                    received(warm)
                before = descriptors(server)
                with closing(socket.create_connection(("127.0.0.1", port))) as connection:
                    for _ in range(100):
                        connection.sendall(BLOCK)
                    connection.shutdown(socket.SHUT_WR)
                    assert received(connection).decode() == f"{100 * MB} {hashlib.sha256(BLOCK * 100).hexdigest()}"
                for _ in range(20):
                    with closing(socket.create_connection(("127.0.0.1", port))) as connection:
                        connection.shutdown(socket.SHUT_WR)
                        assert received(connection).startswith(b"0 ")
                assert settled_descriptors(server, before) <= before
            with command(server, f"0:{source.port}") as port:
                with closing(socket.create_connection(("127.0.0.1", port))) as connection:
                    data = received(connection)
            assert len(data) == 100 * MB
            assert data == BLOCK * 100


def test_a_stalled_reader_uses_no_memory(tmp_path: Path) -> None:
    sent = [0]

    def endless(connection: socket.socket) -> None:
        while True:
            sent[0] += connection.send(BLOCK)

    with Listening(endless) as source, Server(document(source.port), tmp_path, "-allow-open-shell") as server:
        server.wait_running()
        assert server.process is not None
        process = psutil.Process(server.process.pid)
        with command(server, f"0:{source.port}") as port:
            with closing(socket.create_connection(("127.0.0.1", port))) as connection:
                assert connection.recv(1)
                before, count = process.memory_info().rss, -1
                while count != sent[0] or count <= MB:  # until no more data is accepted
                    count = sent[0]
                    time.sleep(0.5)
                assert process.memory_info().rss - before < 16 * MB


async def open_port(stub: RobotServiceStub, port: int) -> None:
    async with stub.Tunnel.open() as stream:
        await stream.send_message(TunnelRequest(destination_port=port))
        await stream.recv_message()


def test_the_published_stub(tmp_path: Path) -> None:
    async def script(server: Server, port: int) -> None:
        channel = Channel("127.0.0.1", server.port)
        try:
            stub = RobotServiceStub(channel)
            tunnels = (await stub.ListTunnels(ListTunnelsRequest())).tunnels
            assert [(tunnel.port, tunnel.connection_timeout.seconds) for tunnel in tunnels] == [(port, 10)]
            async with stub.Tunnel.open() as stream:
                await stream.send_message(TunnelRequest(destination_port=port, data=b"ab"))
                await stream.send_message(TunnelRequest(data=b"cd"))
                await stream.end()
                answer = b"".join([message.data async for message in stream])
            assert answer.decode() == f"4 {hashlib.sha256(b'abcd').hexdigest()}"
            with pytest.raises((GRPCError, StreamTerminatedError)) as refused:
                await open_port(stub, 22)
            if isinstance(refused.value, GRPCError):  # grpclib may notice the end of the stream before its status
                assert refused.value.status is Status.PERMISSION_DENIED
                assert f"allowed ports are {port}" in str(refused.value.message)
        finally:
            channel.close()

    with Listening(digest_at_end) as sink, Server(document(sink.port), tmp_path, "-allow-open-shell") as server:
        asyncio.run(script(server.wait_running(), sink.port))


def test_a_closed_port_is_refused_before_listening(tmp_path: Path) -> None:
    with Server({}, tmp_path, "-allow-open-shell") as server:
        done = server.command("tunnel", "0:22")
        assert done.returncode == 1
        assert "does not allow tunnels to port 22" in done.stderr
        assert server.command("tunnel", "x:22").returncode == 2


def test_removing_an_endpoint_ends_its_tunnel(tmp_path: Path) -> None:
    def hello(connection: socket.socket) -> None:
        connection.sendall(b"hello")
        connection.recv(1)

    with Listening(hello) as source, Server(document(source.port), tmp_path, "-allow-open-shell") as server:
        server.wait_running()
        with command(server, f"0:{source.port}") as port:
            with closing(socket.create_connection(("127.0.0.1", port))) as connection:
                assert connection.recv(5) == b"hello"
                connection.settimeout(10)
                server.write({"network": {"bind_address": "localhost:0"}})
                with suppress(ConnectionResetError):
                    assert connection.recv(1) == b""
