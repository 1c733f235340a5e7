"""Make calls in a closed loop on one raw HTTP/2 connection.

`python -m bench.rpc_load PORT unary|stream STREAMS SECONDS SIZE`
Requests are encoded once and replies are compared byte by byte, so that the load costs far less than any server.
Prints one line of JSON: calls or messages per second, latencies in milliseconds.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time

import hpack
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionRequest as Request
from grpclib.reflection.v1.reflection_pb2 import ServerReflectionResponse as Reply

from bench.rpc_servers import SERVICE
from rpc.http2.codec import frames

WINDOW = 1 << 22
MESSAGES = 500  # messages per streaming call


def message(data: bytes) -> bytes:
    return struct.pack(">BI", 0, len(data)) + data


class Load:
    def __init__(self, port: int, mode: str, size: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = mode == "stream"
        method = "Many" if self.stream else "Echo"
        headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", f"/{SERVICE}/{method}"),
            (":authority", f"127.0.0.1:{port}"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("user-agent", "grpc-python-grpclib/0.4.9 (linux; cpython/3.11.7)"),
            ("viam_client", "python;v0.85.1;v0.1.601"),
        ]
        encoder = hpack.Encoder()
        self.first = encoder.encode(headers)  # fills the table; later blocks contain only indexes
        self.later = encoder.encode(headers)
        text = f"{MESSAGES},{size}" if self.stream else "x" * size
        self.body = message(Request(host=text).SerializeToString())
        self.expected = message(Reply(valid_host="x" * size).SerializeToString())
        self.sid = -1
        self.began: dict[int, float] = {}
        self.received: dict[int, int] = {}
        settings = frames.settings([(frames.INITIAL_WINDOW_SIZE, WINDOW), (frames.ENABLE_PUSH, 0)])
        self.out = [frames.PREFACE, settings, frames.window_update(0, WINDOW)]
        self.owed = 0

    def call(self, now: float) -> None:
        self.sid += 2
        block = self.first if self.sid == 1 else self.later
        self.out.append(frames.frame(frames.HEADERS, frames.END_HEADERS, self.sid, block))
        self.out.append(frames.frame(frames.DATA, frames.END_STREAM, self.sid, self.body))
        self.began[self.sid] = now
        self.received[self.sid] = 0

    def run(self, streams: int, seconds: float) -> dict[str, float]:
        start = time.perf_counter()
        for _ in range(streams):
            self.call(start)
        warm = start + seconds / 4
        latencies: list[float] = []
        data = b""
        measuring = 0.0
        messages = 0
        now = start
        total = len(self.expected) * (MESSAGES if self.stream else 1)
        while now < warm + seconds:
            if self.out:
                self.socket.sendall(b"".join(self.out))
                self.out.clear()
            more = self.socket.recv(1 << 18)
            if not more:
                raise SystemExit("the server closed the connection")
            data = data + more if data else more
            now = time.perf_counter()
            if not measuring and now >= warm:
                measuring, latencies, messages = now, [], 0
            position, size = 0, len(data)
            while size - position >= 9:
                length = data[position] << 16 | data[position + 1] << 8 | data[position + 2]
                end = position + 9 + length
                if end > size:
                    break
                kind, flags = data[position + 3], data[position + 4]
                sid = int.from_bytes(data[position + 5 : position + 9], "big")
                if kind == frames.DATA:
                    self.owed += length
                    self.received[sid] += length
                    if not self.stream and data[position + 9 : end] != self.expected:
                        raise SystemExit("wrong reply")
                elif kind in (frames.RST_STREAM, frames.GOAWAY):
                    raise SystemExit(f"frame {kind}: {data[position + 9 : end]!r}")
                elif kind == frames.PING and not flags & frames.ACK:
                    self.out.append(frames.ping(data[position + 9 : end], ack=True))
                elif kind == frames.SETTINGS and not flags & frames.ACK:
                    self.out.append(frames.SETTINGS_ACK)
                if flags & frames.END_STREAM and kind in (frames.DATA, frames.HEADERS):
                    if self.received.pop(sid) != total:
                        raise SystemExit("reply of a wrong length")
                    latencies.append(now - self.began.pop(sid))
                    messages += MESSAGES if self.stream else 1
                    self.call(now)
                position = end
            data = data[position:]
            if self.owed > WINDOW // 4:
                self.out.append(frames.window_update(0, self.owed))
                if self.stream:
                    self.out += [frames.window_update(sid, self.owed) for sid, got in self.received.items() if got]
                self.owed = 0
        latencies.sort()
        if not latencies:
            raise SystemExit("no call has ended")
        count = len(latencies)
        return {
            "rate": messages / (now - measuring),
            "p50": latencies[count // 2] * 1e3,
            "p99": latencies[int(count * 0.99)] * 1e3,
        }


if __name__ == "__main__":
    load = Load(int(sys.argv[1]), sys.argv[2], int(sys.argv[5]))
    print(json.dumps(load.run(int(sys.argv[3]), float(sys.argv[4]))))
