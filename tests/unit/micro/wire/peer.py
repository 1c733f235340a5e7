"""A client of a `Connection` in memory, on the `h2` library, which shares no code with ours."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.events

from micro.wire.bounds import Bounds
from micro.wire.http2 import Budget, Connection

PATH = "/viam.robot.v1.RobotService/GetVersion"


def request(path: str = PATH, **extra: str) -> list[tuple[str, str]]:
    fields = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"), ("te", "trailers")]
    return [*fields, ("content-type", "application/grpc"), *extra.items()]


def message(data: bytes, flag: int = 0) -> bytes:
    return struct.pack(">BI", flag, len(data)) + data


@dataclass
class Reply:
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    trailers: dict[str, str] = field(default_factory=dict)
    ended: bool = False
    reset: int | None = None

    @property
    def status(self) -> int:
        return int((self.trailers or self.headers)["grpc-status"])


class Peer:
    """Both ends of a connection. `now` is the clock in milliseconds."""

    def __init__(self, bounds: Bounds | None = None, budget: Budget | None = None) -> None:
        self.now = 1
        bounds = bounds or Bounds()
        self.server = Connection(bounds, budget or Budget(bounds.held), self.now)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self.replies: dict[int, Reply] = {}
        self.goaway: h2.events.ConnectionTerminated | None = None
        self.acknowledges = True
        self.h2.initiate_connection()
        self.exchange()

    def exchange(self, chunk: int = 1 << 20) -> None:
        """Carry bytes in both directions until there are none."""
        while True:
            data = self.h2.data_to_send()
            for at in range(0, len(data), chunk):
                self.server.receive(data[at : at + chunk], self.now)
            reply = self.server.output()
            if not data and not reply:
                return
            for event in self.h2.receive_data(reply):
                self._take(event)

    def begin(self, data: bytes = b"", path: str = PATH, *, end: bool = True, **extra: str) -> int:
        sid = int(self.h2.get_next_available_stream_id())
        self.replies[sid] = Reply()
        self.h2.send_headers(sid, request(path, **extra))
        if data or end:
            self.h2.send_data(sid, data, end_stream=end)
        return sid

    def ask(self, data: bytes = b"", path: str = PATH, answer: bytes = b"", **extra: str) -> Reply:
        """Send a call, answer all calls that are ready, and return the reply."""
        sid = self.begin(message(data), path, **extra)
        self.exchange()
        while self.server.ready:
            self.server.answer(self.server.ready.pop(0), answer)
        self.exchange()
        return self.replies[sid]

    def _take(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.ResponseReceived(stream_id=int(sid), headers=headers):
                self.replies[sid].headers = dict(headers)  # type: ignore[arg-type]
            case h2.events.DataReceived(stream_id=int(sid), data=data, flow_controlled_length=size):
                self.replies[sid].body += data
                if self.acknowledges:
                    self.h2.acknowledge_received_data(size, sid)
            case h2.events.TrailersReceived(stream_id=int(sid), headers=headers):
                self.replies[sid].trailers = dict(headers)  # type: ignore[arg-type]
            case h2.events.StreamEnded(stream_id=int(sid)):
                self.replies[sid].ended = True
            case h2.events.StreamReset(stream_id=int(sid), error_code=code):
                self.replies[sid].reset = int(code)
            case h2.events.ConnectionTerminated():
                self.goaway = event
