"""Make calls of GetReadings at a constant rate on one raw HTTP/2 connection.

`python -m bench.control_load PORT NAME RATE SECONDS`

Calls are sent on time whether earlier ones were answered or not. All requests are identical except for the stream
number, so that the load costs far less than the server. Prints one line of JSON.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time

from bench.footprint import frame, literal

PATH = "/viam.component.sensor.v1.SensorService/GetReadings"
FIELDS = (
    (":method", "POST"), (":scheme", "http"), (":path", PATH), (":authority", "localhost"),
    ("te", "trailers"), ("content-type", "application/grpc"),
)  # fmt: skip
HEADERS, END_STREAM, WINDOW = 1, 1, (1 << 30).to_bytes(4, "big")
BURST = 0.005  # seconds between bursts of calls


class Load:
    """The connection, with calls in progress and latencies of answered calls."""

    def __init__(self, port: int, name: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(8, 0, 0, WINDOW))
        self._block = b"".join(b"\0" + literal(key) + literal(value) for key, value in FIELDS)
        message = b"\x0a" + literal(name)
        self._body = bytes(1) + len(message).to_bytes(4, "big") + message
        self._stream = -1
        self._rest = b""
        self.sent: dict[int, float] = {}
        self.latencies: list[float] = []

    def call(self, count: int) -> None:
        """Send `count` calls."""
        parts = []
        for _ in range(count):
            self._stream += 2
            parts.append(frame(1, 4, self._stream, self._block) + frame(0, 1, self._stream, self._body))
            self.sent[self._stream] = time.monotonic()
        self.socket.sendall(b"".join(parts))

    def receive(self, until: float) -> None:
        """Process answers until a time."""
        while (left := until - time.monotonic()) > 0:
            if not select.select([self.socket], [], [], left)[0]:
                return
            data = self.socket.recv(1 << 16)
            if not data:
                raise SystemExit("the server closed the connection")
            self._take(self._rest + data)

    def _take(self, data: bytes) -> None:
        place = 0
        while len(data) >= place + 9 and len(data) >= place + 9 + int.from_bytes(data[place : place + 3], "big"):
            length = int.from_bytes(data[place : place + 3], "big")
            kind, flags = data[place + 3], data[place + 4]
            stream = int.from_bytes(data[place + 5 : place + 9], "big")
            if kind == HEADERS and flags & END_STREAM:
                self.latencies.append(time.monotonic() - self.sent.pop(stream))
            elif kind == 4 and not flags & 1:  # SETTINGS
                self.socket.sendall(frame(4, 1, 0, b""))
            elif kind == 6 and not flags & 1:  # PING
                self.socket.sendall(frame(6, 1, 0, data[place + 9 : place + 9 + length]))
            place += 9 + length
        self._rest = data[place:]


def main(port: int, name: str, rate: float, seconds: float) -> dict[str, float]:
    """Return the answered calls per second and their latencies in milliseconds."""
    load = Load(port, name)
    begin = time.monotonic()
    total, sent = int(rate * seconds), 0
    while sent < total:
        due = min(total, int((time.monotonic() - begin) * rate) + 1)
        load.call(due - sent)
        sent = due
        load.receive(time.monotonic() + BURST)
    answered = len(load.latencies)
    took = time.monotonic() - begin
    load.receive(time.monotonic() + 1.0)
    ordered = sorted(load.latencies) or [0.0]
    return {
        "rate": answered / took,
        "p50_ms": ordered[len(ordered) // 2] * 1e3,
        "p99_ms": ordered[int(len(ordered) * 0.99)] * 1e3,
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))))
