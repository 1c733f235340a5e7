"""A client built on the `h2` library, a strict implementation that shares no code with ours."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import trio


@dataclass
class Answer:
    """The response received so far on one stream."""

    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    trailers: dict[str, str] | None = None
    ended: bool = False
    reset: int | None = None

    @property
    def status(self) -> int:
        return int(self.headers[":status"])

    @property
    def over(self) -> bool:
        return self.ended or self.reset is not None


class H2Client:
    """Sends requests over any Trio stream; for use by one task at a time."""

    def __init__(self, stream: trio.abc.Stream, *, acknowledges: bool = True) -> None:
        self.stream = stream
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self.acknowledges = acknowledges  # return flow-control window for received data
        self.answers: dict[int, Answer] = {}
        self.goaway: h2.events.ConnectionTerminated | None = None
        self.closed = False
        self.settings: dict[int, int] = {}
        self.acknowledged = 0  # number of our SETTINGS frames that the server acknowledged
        self._data = b""

    async def start(self) -> None:
        self.h2.initiate_connection()
        await self.flush()

    async def flush(self, cuts: Iterable[int] = ()) -> None:
        """Send queued data in pieces of the lengths in `cuts`, and the rest as one piece."""
        data = self.h2.data_to_send()
        try:
            for size in cuts:
                if data[:size]:
                    await self.stream.send_all(data[:size])
                data = data[size:]
            if data:
                await self.stream.send_all(data)
        except trio.BrokenResourceError:
            pass  # data that the server sent before it closed can still be read

    def begin(self, fields: list[tuple[str, str]], *, end: bool = False, **priority: Any) -> int:
        sid = self.h2.get_next_available_stream_id()
        self.answers[sid] = Answer()
        self.h2.send_headers(sid, fields, end_stream=end, **priority)
        return int(sid)

    async def send(self, sid: int, data: bytes, *, end: bool = True) -> None:
        """Send a body, respecting flow control."""
        while True:
            room = min(self.h2.local_flow_control_window(sid), self.h2.max_outbound_frame_size, len(data))
            if room or not data:
                piece, data = data[:room], data[room:]
                self.h2.send_data(sid, piece, end_stream=end and not data)
                await self.flush()
                if not data:
                    return
            else:
                await self.step()
                if self.answers[sid].over or self.closed:
                    return

    async def reset(self, sid: int, code: int) -> None:
        self.h2.reset_stream(sid, code)
        self.answers[sid].reset = code
        await self.flush()

    async def ask(self, fields: list[tuple[str, str]], body: bytes | None = None) -> Answer:
        """Send a complete request and return its response."""
        sid = self.begin(fields, end=body is None)
        await self.flush()
        if body is not None:
            await self.send(sid, body)
        return await self.answer(sid)

    async def answer(self, sid: int) -> Answer:
        await self.until(lambda: self.answers[sid].over)
        return self.answers[sid]

    async def until(self, true: Callable[[], bool]) -> None:
        while not true() and not self.closed:
            await self.step()

    async def step(self) -> None:
        """Read once and handle the events."""
        try:
            data = await self.stream.receive_some(65536)
        except (trio.BrokenResourceError, ssl.SSLError):
            data = b""
        if not data:
            self.closed = True
            return
        self._data += data
        while len(self._data) >= 9 and len(self._data) >= 9 + (size := int.from_bytes(self._data[:3], "big")):
            frame, self._data = bytes(self._data[: 9 + size]), self._data[9 + size :]
            if self.goaway is None:
                for event in self.h2.receive_data(frame):
                    self._take(event)
            else:
                await self._late(frame)
        if self.acknowledges and self.goaway is None:
            self._reopen()
        await self.flush()

    def _reopen(self) -> None:
        """Reopen windows that our own SETTINGS made negative, which h2 does not do."""
        for sid, answer in self.answers.items():
            if not answer.over and (window := self.h2.remote_flow_control_window(sid)) <= 0:
                self.h2.increment_flow_control_window(300 - window, sid)

    async def _late(self, frame: bytes) -> None:
        """Handle a frame after GOAWAY: h2 ignores it, but RFC 9113 section 6.8 lets existing streams continue."""
        kind, sid, payload = frame[3], int.from_bytes(frame[5:9], "big"), frame[9:]
        if kind == 0:
            self.answers[sid].body += payload
            self.answers[sid].ended = bool(frame[4] & 1)
        elif kind == 1 and not self.answers[sid].headers:
            self.answers[sid].headers = {":status": "200"} if payload[:1] == b"\x88" else {"x": repr(payload)}
        elif kind == 3:
            self.answers[sid].reset = int.from_bytes(payload, "big")
        elif kind == 6 and not frame[4] & 1:
            try:
                await self.stream.send_all(b"\0\0\x08\6\1\0\0\0\0" + payload)
            except trio.BrokenResourceError:
                pass

    def _take(self, event: Any) -> None:
        match event:
            case h2.events.ResponseReceived(stream_id=sid, headers=headers):
                self.answers[sid].headers = dict(headers)
            case h2.events.DataReceived(stream_id=sid, data=data, flow_controlled_length=flow):
                self.answers[sid].body += data
                if self.acknowledges:
                    self.h2.acknowledge_received_data(flow, sid)
            case h2.events.TrailersReceived(stream_id=sid, headers=headers):
                self.answers[sid].trailers = dict(headers)
            case h2.events.StreamEnded(stream_id=sid):
                self.answers[sid].ended = True
            case h2.events.StreamReset(stream_id=sid, error_code=code, remote_reset=True):
                if not self.answers[sid].ended:
                    self.answers[sid].reset = int(code)
            case h2.events.ConnectionTerminated():
                self.goaway = event
            case h2.events.SettingsAcknowledged():
                self.acknowledged += 1
            case h2.events.RemoteSettingsChanged(changed_settings=changed):
                self.settings |= {int(key): change.new_value for key, change in changed.items()}
