"""Compare a real call, GetReadings of a sensor, with the same call on servers of grpclib and grpcio.

`python -m bench readings [--rounds 5] [--seconds 1.5] [--only TEXT]`

A machine-server with a sensor answers calls with all that it does for each: its resource table, sessions, permissions,
operations, statistics. The peers are minimal: they look the sensor up in a dictionary, call it, and convert its three
values with the functions of the official SDK. Each server is a process of its own, started in each round in alternating
order; one raw client loads it with requests that were encoded before. The figure is the processor time of the server
for each call, the median of the rounds; only ratios within one run are meaningful. gRPC-Web calls use HTTP/1.1, one
call at a time on each connection, as a browser makes them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import select
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import hpack
import psutil

from engine.components.sensing.sensor import Sensor
from engine.resource import Extra, Value, model
from rpc.http2.codec import frames

SCENARIOS: Final = (  # protocol, connections, calls at once on each
    ("native", 1, 1),
    ("native", 1, 16),
    ("native", 1, 64),
    ("native", 2, 32),
    ("native", 10, 8),
    ("native", 16, 1),
    ("web", 1, 1),
    ("web", 16, 1),
)
PEERS: Final = ("grpclib", "aio", "threads")
KINDS: Final = ("ours", *PEERS)
METHOD: Final = "/viam.component.sensor.v1.SensorService/GetReadings"
NAME: Final = "target"
VALUES: Final = {"temperature": 21.5, "humidity": 40.0, "pressure": 101325.0}
WINDOW: Final = 1 << 22
WARM: Final = 0.3  # seconds


@model("bench:readings:target")
class ThreeValues(Sensor):
    """Returns three values at once."""

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """Return three values."""
        return VALUES


# Servers


@contextmanager
def serving(kind: str) -> Iterator[tuple[int, int]]:
    """Run a server; yield its process id and its port."""
    with tempfile.TemporaryDirectory() as folder:
        read, write = os.pipe()
        if kind == "ours":
            config = Path(folder) / "machine.json"
            component = {"name": NAME, "api": "rdk:component:sensor", "model": "bench:readings:target"}
            config.write_text(json.dumps({"components": [component], "network": {"bind_address": "localhost:0"}}))
            command = ["-m", "runtime.server.cli", "-config", str(config)]
        else:
            command = ["-m", "bench.readings", "--serve", kind]
        process = subprocess.Popen(
            [sys.executable, *command],
            env={**os.environ, "MACHINE_READY_FD": str(write), "MACHINE_MODELS": "bench.readings:ThreeValues"},
            pass_fds=[write],
            stdout=subprocess.DEVNULL,
        )
        os.close(write)
        try:
            with os.fdopen(read) as ready:
                yield process.pid, int(ready.readline().strip().rpartition(":")[2])
        finally:
            process.kill()
            process.wait()


def _ready(port: int) -> None:
    os.write(int(os.environ["MACHINE_READY_FD"]), f"localhost:{port}\n".encode())


def _reply_of(request: Any) -> Any:
    from viam.gen.common.v1.common_pb2 import GetReadingsResponse
    from viam.utils import sensor_readings_native_to_value, struct_to_dict

    values = {NAME: VALUES}[request.name]
    struct_to_dict(request.extra)
    return GetReadingsResponse(readings=sensor_readings_native_to_value(values))


def serve_grpclib() -> None:
    from grpclib.const import Cardinality, Handler
    from grpclib.server import Server
    from viam.gen.common.v1.common_pb2 import GetReadingsRequest, GetReadingsResponse

    async def answer(stream: Any) -> None:
        request = await stream.recv_message()
        await stream.send_message(_reply_of(request))

    class Service:
        def __mapping__(self) -> dict[str, Handler]:
            return {METHOD: Handler(answer, Cardinality.UNARY_UNARY, GetReadingsRequest, GetReadingsResponse)}

    async def main() -> None:
        server = Server([Service()])
        await server.start("127.0.0.1", 0)
        assert server._server is not None
        _ready(server._server.sockets[0].getsockname()[1])
        await server.wait_closed()

    asyncio.run(main())


def _generic(grpc: Any, function: Any) -> Any:
    from viam.gen.common.v1.common_pb2 import GetReadingsRequest, GetReadingsResponse

    handler = grpc.unary_unary_rpc_method_handler(
        function, GetReadingsRequest.FromString, GetReadingsResponse.SerializeToString
    )
    service, _, method = METHOD[1:].partition("/")
    return grpc.method_handlers_generic_handler(service, {method: handler})


def serve_aio() -> None:
    import grpc.aio

    async def answer(request: Any, context: Any) -> Any:
        return _reply_of(request)

    async def main() -> None:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((_generic(grpc, answer),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        _ready(port)
        await server.wait_for_termination()

    asyncio.run(main())


def serve_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    import grpc

    server = grpc.server(ThreadPoolExecutor(16))
    server.add_generic_rpc_handlers((_generic(grpc, lambda request, context: _reply_of(request)),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    _ready(port)
    server.wait_for_termination()


SERVERS: Final[Mapping[str, Callable[[], None]]] = {
    "grpclib": serve_grpclib,
    "aio": serve_aio,
    "threads": serve_threads,
}


# Client


def _request() -> bytes:
    from viam.gen.common.v1.common_pb2 import GetReadingsRequest

    data = GetReadingsRequest(name=NAME).SerializeToString()
    return struct.pack(">BI", 0, len(data)) + data


def _check(reply: bytes) -> None:
    from viam.gen.common.v1.common_pb2 import GetReadingsResponse

    values = {key: value.number_value for key, value in GetReadingsResponse.FromString(reply).readings.items()}
    if values != VALUES:
        raise SystemExit(f"a wrong reply: {values}")


class NativeLoad:
    """One HTTP/2 connection that keeps its number of calls in flight."""

    def __init__(self, port: int, calls: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", METHOD),
            (":authority", f"127.0.0.1:{port}"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("user-agent", "grpc-python-grpclib/0.4.9 (linux; cpython/3.11.7)"),
            ("viam_client", "python;v0.85.1;v0.1.601"),
        ]
        encoder = hpack.Encoder()
        self.first = encoder.encode(headers)  # fills the table; later blocks contain only indexes
        self.later = encoder.encode(headers)
        self.body = _request()
        self.sid = -1
        self.owed = self.ended = 0
        self.rest = b""
        settings = frames.settings([(frames.INITIAL_WINDOW_SIZE, WINDOW), (frames.ENABLE_PUSH, 0)])
        self.out = [frames.PREFACE, settings, frames.window_update(0, WINDOW)]
        self.checked = False
        for _ in range(calls):
            self._call()
        self.flush()

    def _call(self) -> None:
        self.sid += 2
        block = self.first if self.sid == 1 else self.later
        self.out.append(frames.frame(frames.HEADERS, frames.END_HEADERS, self.sid, block))
        self.out.append(frames.frame(frames.DATA, frames.END_STREAM, self.sid, self.body))

    def flush(self) -> None:
        """Send what is queued."""
        if self.out:
            self.socket.sendall(b"".join(self.out))
            self.out.clear()

    def receive(self) -> None:
        """Read replies, and follow each with the next call."""
        more = self.socket.recv(1 << 18)
        if not more:
            raise SystemExit("the server closed the connection")
        data = self.rest + more
        position, size = 0, len(data)
        while size - position >= 9:
            length = data[position] << 16 | data[position + 1] << 8 | data[position + 2]
            end = position + 9 + length
            if end > size:
                break
            kind, flags = data[position + 3], data[position + 4]
            if kind == frames.DATA:
                self.owed += length
                if not self.checked and length:
                    self.checked = True
                    _check(data[position + 14 : end])
            elif kind in (frames.RST_STREAM, frames.GOAWAY):
                raise SystemExit(f"frame {kind}: {data[position + 9 : end]!r}")
            elif kind == frames.PING and not flags & frames.ACK:
                self.out.append(frames.ping(data[position + 9 : end], ack=True))
            elif kind == frames.SETTINGS and not flags & frames.ACK:
                self.out.append(frames.SETTINGS_ACK)
            if flags & frames.END_STREAM and kind in (frames.DATA, frames.HEADERS):
                self.ended += 1
                self._call()
            position = end
        self.rest = data[position:]
        if self.owed > WINDOW // 4:
            self.out.append(frames.window_update(0, self.owed))
            self.owed = 0
        self.flush()


class WebLoad:
    """One HTTP/1.1 connection with a gRPC-Web call at a time, with the headers that Chromium sends."""

    def __init__(self, port: int, calls: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        body = _request()
        lines = [
            f"POST {METHOD} HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            "Connection: keep-alive",
            f"Content-Length: {len(body)}",
            'sec-ch-ua-platform: "Linux"',
            "x-grpc-web: 1",
            "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0",
            'sec-ch-ua: "Chromium";v="140", "Not=A?Brand";v="24"',
            "Content-Type: application/grpc-web+proto",
            "sec-ch-ua-mobile: ?0",
            "Accept: */*",
            f"Origin: http://127.0.0.1:{port}",
            "Sec-Fetch-Site: same-origin",
            "Sec-Fetch-Mode: cors",
            "Sec-Fetch-Dest: empty",
            f"Referer: http://127.0.0.1:{port}/control",
            "Accept-Encoding: gzip, deflate, br, zstd",
            "Accept-Language: en-US,en;q=0.9",
        ]
        self.request = "\r\n".join([*lines, "", ""]).encode() + body
        self.data = b""
        self.ended = 0
        self.socket.sendall(self.request)

    def receive(self) -> None:
        """Read a reply, and follow it with the next call."""
        more = self.socket.recv(1 << 16)
        if not more:
            raise SystemExit(f"the server closed the connection after {self.data[:200]!r}")
        self.data += more
        head, separator, body = self.data.partition(b"\r\n\r\n")
        if not separator:
            return
        if b"\r\ncontent-length:" in head.lower():
            length = int(head.lower().partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0])
            if len(body) < length:
                return
        elif not body.endswith(b"0\r\n\r\n"):
            return
        if not head.startswith(b"HTTP/1.1 200") or b"grpc-status:0" not in body.replace(b" ", b""):
            raise SystemExit(f"a call failed: {self.data[:400]!r}")
        if not self.ended and b"temperature" not in body:
            raise SystemExit(f"a wrong reply: {self.data[:400]!r}")
        self.data = b""
        self.ended += 1
        self.socket.sendall(self.request)


LOADS: Final[Mapping[str, type[NativeLoad] | type[WebLoad]]] = {"native": NativeLoad, "web": WebLoad}


def load(pid: int, port: int, scenario: tuple[str, int, int], seconds: float) -> tuple[float, float]:
    """Return microseconds of the server's processor for each call, and calls per second."""
    protocol, connections, calls = scenario
    loads = {item.socket.fileno(): item for item in (LOADS[protocol](port, calls) for _ in range(connections))}
    poll = select.epoll()
    for descriptor in loads:
        poll.register(descriptor, select.EPOLLIN)
    server = psutil.Process(pid)

    def until(end: float) -> None:
        while time.perf_counter() < end:
            for descriptor, _ in poll.poll(5):
                loads[descriptor].receive()

    def spent() -> float:
        times = server.cpu_times()
        return float(times.user + times.system)

    until(time.perf_counter() + WARM)
    ended, begin, used = sum(item.ended for item in loads.values()), time.perf_counter(), spent()
    until(begin + seconds)
    used, took = spent() - used, time.perf_counter() - begin
    ended = sum(item.ended for item in loads.values()) - ended
    for item in loads.values():
        item.socket.close()
    poll.close()
    return float(used / ended * 1e6), ended / took


def name_of(scenario: tuple[str, int, int]) -> str:
    protocol, connections, calls = scenario
    return f"{protocol}, {connections} x {calls}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser("python -m bench readings", description=(__doc__ or "").split("\n\n")[2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="seconds of each measurement")
    parser.add_argument("--only", default="", help="only scenarios whose name contains this text")
    parser.add_argument("--kinds", default=",".join(KINDS), help="servers to run")
    parser.add_argument("--serve", default="", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.serve:
        SERVERS[options.serve]()
        return 0
    kinds = options.kinds.split(",")
    scenarios = [scenario for scenario in SCENARIOS if options.only in name_of(scenario)]
    costs: dict[tuple[str, str], list[float]] = defaultdict(list)
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    for turn in range(options.rounds):
        for kind in kinds if turn % 2 == 0 else kinds[::-1]:
            with serving(kind) as (pid, port):
                for scenario in scenarios:
                    if scenario[0] == "web" and kind != "ours":
                        continue
                    cost, rate = load(pid, port, scenario, options.seconds)
                    costs[kind, name_of(scenario)].append(cost)
                    rates[kind, name_of(scenario)].append(rate)
    print(f"load average {os.getloadavg()[0]:.1f}; µs of the server's processor for each call, and calls per second")
    medians = {key: statistics.median(values) for key, values in costs.items()}
    for scenario in scenarios:
        name = name_of(scenario)
        row = [f"{name:14}"]
        for kind in kinds:
            if (kind, name) in medians:
                ratio = f" ({medians[kind, name] / medians['ours', name]:.2f})" if kind != "ours" else ""
                row.append(f"{kind} {medians[kind, name]:.0f}{ratio}, {statistics.median(rates[kind, name]):.0f}/s")
        print("  ".join(row))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
