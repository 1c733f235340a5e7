"""One connection of HTTP/2 (RFC 9113) for gRPC, of the server or the client, without input and output. Pure.

The owner passes what it has received to `receive`, carries out the calls in `ready`, answers each with `answer` or
`fail`, and sends what `output` returns, until `over`. It calls `tick` about every second. Only unary calls are served.

A peer can make a connection keep no more than the limits in Bounds: a frame is not collected unless it is small, the
body of a request that is too long is discarded while it arrives, and replies are written only as far as they are sent.
"""

import struct

from micro.wire import faults, hpack
from micro.wire.bounds import GLITCHES_BACK, Bounds
from micro.wire.faults import CallFailure, WireFault

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED, HAS_PRIORITY, ACK = 1, 4, 8, 32, 1
WINDOW = 65535
MAX_WINDOW = (1 << 31) - 1
MAX_FRAME = 16384
SIZES = {PRIORITY: 5, RST_STREAM: 4, PING: 8, WINDOW_UPDATE: 4}
MAX_SETTINGS = 32 * 6
CONTENT_TYPE = b"application/grpc"
OK_HEAD = b"\x88\x0f\x10\x10application/grpc"  # :status 200, and content-type by its index in the static table
RESET_COST = 4  # as many frames without effect
CONTINUATION_COST = 25  # the same; headers that fit into the limit need none
LEFT = "the peer has ended the connection"
EVERYWHERE = (SETTINGS, PING, GOAWAY)  # frames of stream 0


class Budget:
    """Bytes of requests that all connections of a server hold together."""

    def __init__(self, most: int) -> None:
        self.left = most


class Stream:
    """A call. Its owner reads `headers` and `body`, a message without its prefix of gRPC."""

    def __init__(self, number: int, window: int, now: int) -> None:
        self.number = number
        self.headers: dict[bytes, bytes] = {}
        self.body = bytearray()
        self.size = -1  # of the message, when its prefix has arrived
        self.prefix = b""
        self.held = 0  # bytes taken from the budget
        self.ended = False  # by the peer
        self.dropped = False  # what still arrives is discarded
        self.window = window
        self.since = now  # of the last progress
        self.reply = b""
        self.sent = 0
        self.trailers = b""
        self.failure: tuple[int, str] | None = None  # of a request that could not be received


class Connection:
    """One HTTP/2 connection; see the module."""

    def __init__(self, bounds: Bounds, budget: Budget, now: int, client: bool = False) -> None:
        self.bounds = bounds
        self.over = ""  # why the connection has ended, when nothing more is to be received
        self.ready: list[Stream] = []
        self.cancelled: list[Stream] = []  # calls that were in `ready`, and whose callers have gone: to be stopped
        self.trusted = client  # a caller has presented valid credentials; set by the owner
        self.began = self.heard = self.used = now
        self._now = now
        self._budget = budget
        self._client = client
        self._decoder = hpack.Decoder(bounds.header_table, bounds.header_list)
        self._streams: dict[int, Stream] = {}
        self._out = bytearray()
        self._preface = 0 if client else len(PREFACE)  # bytes still to come
        self._settled = False  # the first frame of the peer, its settings, has arrived
        self._head = bytearray()
        self._left = 0  # bytes of the payload still to come
        self._kind = self._flags = self._number = 0
        self._payload = bytearray()
        self._padding = -1
        self._block = bytearray()
        self._block_of = 0  # the stream whose header block is not complete
        self._block_flags = 0
        self._last = 0  # highest stream of the peer
        self._next = 1
        self._window = WINDOW
        self._initial = WINDOW
        self._owed = 0  # bytes of the window of the connection to be given back
        self._glitches = bounds.glitches
        self._pinged = 0
        self._leaving = False  # the peer has sent GOAWAY, and waits for the answers of its calls
        if client:
            self._out += PREFACE
        self._frame(SETTINGS, 0, 0, struct.pack(">HIHIHI", 3, bounds.streams, 6, bounds.header_list, 2, 0))

    @property
    def calls(self) -> int:
        """Number of calls that are being received, carried out or answered."""
        return len(self._streams)

    # Receiving

    def receive(self, data: bytes, now: int) -> None:
        """Take bytes of the peer. Faults end the connection; `output` then has the reason for the peer."""
        self._now = self.heard = now
        self._pinged = 0
        if self.over:
            return
        try:
            at = 0
            while at < len(data) and not self.over:
                at = self._take(data, at)
        except WireFault as fault:
            self._end(fault.code, fault.text)

    def _take(self, data: bytes, at: int) -> int:
        """Take a part of a frame from `data`, and return where the next one begins."""
        if self._preface:
            part = data[at : at + self._preface]
            start = len(PREFACE) - self._preface
            if part != PREFACE[start : start + len(part)]:
                raise WireFault(faults.PROTOCOL_ERROR, "this is not HTTP/2")
            self._preface -= len(part)
            return at + len(part)
        if len(self._head) < 9:
            part = data[at : at + 9 - len(self._head)]
            self._head += part
            if len(self._head) == 9:
                self._begin()
            return at + len(part)
        part = data[at : at + self._left]
        self._left -= len(part)
        if self._kind == DATA:
            self._data(part)
        elif self._kind in (HEADERS, CONTINUATION, SETTINGS) or self._kind in SIZES:
            self._payload += part
        if not self._left:
            self._finish()
        return at + len(part)

    def _begin(self) -> None:
        """Check the head of a frame before its payload arrives."""
        high, low, kind, flags, number = struct.unpack(">BHBBI", self._head)
        size = high << 16 | low
        number &= MAX_WINDOW
        self._left, self._kind, self._flags, self._number = size, kind, flags, number
        if size > MAX_FRAME:
            raise WireFault(faults.FRAME_SIZE_ERROR, "a frame is too large")
        if not self._settled and (kind != SETTINGS or flags & ACK):
            raise WireFault(faults.PROTOCOL_ERROR, "the first frame is not SETTINGS")
        if (kind == CONTINUATION) != (self._block_of != 0) or (self._block_of and number != self._block_of):
            raise WireFault(faults.PROTOCOL_ERROR, "a header block is interrupted, or continues nothing")
        if (kind in EVERYWHERE and number) or (kind in (DATA, HEADERS, PRIORITY, RST_STREAM) and not number):
            raise WireFault(faults.PROTOCOL_ERROR, "a frame belongs to the wrong stream")
        if kind == PUSH_PROMISE:
            raise WireFault(faults.PROTOCOL_ERROR, "clients must not send PUSH_PROMISE")
        if kind in SIZES and size != SIZES[kind]:
            raise WireFault(faults.FRAME_SIZE_ERROR, "a frame has the wrong size")
        if kind == SETTINGS and (size > MAX_SETTINGS or size % 6 or (flags & ACK and size)):
            calm = size > MAX_SETTINGS
            raise WireFault(faults.ENHANCE_YOUR_CALM if calm else faults.FRAME_SIZE_ERROR, "SETTINGS has a wrong size")
        if kind in (HEADERS, CONTINUATION) and size + len(self._block) > self.bounds.header_block:
            raise WireFault(faults.ENHANCE_YOUR_CALM, "a header block is too large")
        if kind == DATA:
            self._check_begun()
            self._owed += size
            self._padding = -1 if flags & PADDED else 0
            if flags & PADDED and not size:
                raise WireFault(faults.FRAME_SIZE_ERROR, "a padded frame has no length of its padding")
            if not size or number not in self._streams:
                self._glitch()
        elif kind > CONTINUATION or kind in (PRIORITY, PING, SETTINGS):
            self._glitch()
        if not size:
            self._finish()

    def _check_begun(self) -> None:
        """Refuse frames of streams that have not begun."""
        begun = self._number < self._next if self._client else self._number <= self._last
        if not begun or self._number % 2 == 0:
            raise WireFault(faults.PROTOCOL_ERROR, "a frame belongs to a stream that has not begun")

    def _finish(self) -> None:
        """Handle a complete frame."""
        payload = self._payload
        self._payload = bytearray()
        self._head = bytearray()
        kind = self._kind
        if kind == DATA:
            if self._flags & END_STREAM and self._number in self._streams:
                self._ended(self._streams[self._number])
            if self._owed > WINDOW // 2:
                self._repay()
        elif kind in (HEADERS, CONTINUATION):
            self._headers(payload)
        elif kind == SETTINGS:
            self._settings(payload)
        elif kind == PING and not self._flags & ACK:
            self._frame(PING, ACK, 0, payload)
        elif kind == WINDOW_UPDATE:
            self._update(payload)
        elif kind == RST_STREAM:
            self._check_begun()
            self._glitch(RESET_COST)
            stream = self._streams.get(self._number)
            if stream is not None:
                stream.dropped = True
                stream.failure = (faults.UNAVAILABLE, "the peer has cancelled the call")
                if self._client:
                    self.ready.append(stream)
                elif stream.ended:
                    self.cancelled.append(stream)
                if self._client or not stream.ended or stream.trailers:
                    self._remove(stream)  # otherwise when it has been carried out, so that it counts until then
        elif kind == GOAWAY:
            self._leaving = True
            if not self._streams:
                self.over = LEFT

    # Requests

    def _data(self, part: bytes) -> None:
        if self._padding < 0:
            self._padding = part[0]
            if self._padding > self._left + len(part) - 1:
                raise WireFault(faults.PROTOCOL_ERROR, "a frame has more padding than bytes")
            part = part[1:]
        room = self._left + len(part) - self._padding  # bytes before the padding, of those that have not been taken
        part = part[: max(room, 0)]
        stream = self._streams.get(self._number)
        if stream is None or not part:
            return
        if stream.ended and not self._client:
            raise WireFault(faults.STREAM_CLOSED, "a request goes on after its end")
        if stream.dropped:
            return
        if stream.size < 0:
            need = 5 - len(stream.prefix)
            stream.prefix += bytes(part[:need])
            part = part[need:]
            if len(stream.prefix) < 5:
                return
            flag, size = struct.unpack(">BI", stream.prefix)
            if flag:
                self._refuse(stream, faults.UNIMPLEMENTED, "compressed messages are not supported")
                return
            if size > self.bounds.message:
                text = f"the message has {size} bytes, and this server takes {self.bounds.message}"
                self._refuse(stream, faults.EXHAUSTED, text)
                return
            if size > self._budget.left:
                self._refuse(stream, faults.EXHAUSTED, "too many requests arrive at once: try again")
                return
            stream.size = stream.held = size
            self._budget.left -= size
        if len(stream.body) + len(part) > stream.size:
            self._refuse(stream, faults.INVALID, "the request has more than one message")
            return
        stream.body += part

    def _refuse(self, stream: Stream, status: int, text: str) -> None:
        """Fail a call whose request is not complete, and discard what still arrives of it."""
        stream.dropped = True
        self._glitch()
        if self._client:
            stream.failure = (status, text)
            self.ready.append(stream)
            self._remove(stream)
        else:
            self.fail(stream, status, text)

    def _headers(self, payload: bytearray) -> None:
        if self._kind == HEADERS:
            start, end = 0, len(payload)
            if self._flags & PADDED:
                if not payload:
                    raise WireFault(faults.FRAME_SIZE_ERROR, "a padded frame has no length of its padding")
                start, end = 1, end - payload[0]
            if self._flags & HAS_PRIORITY:
                start += 5
            if start > end:
                raise WireFault(faults.PROTOCOL_ERROR, "a frame has more padding than bytes")
            self._block = payload[start:end]
            self._block_flags = self._flags
        else:
            self._glitch(CONTINUATION_COST)
            self._block += payload
        if not self._flags & END_HEADERS:
            self._block_of = self._number
            return
        block, self._block, self._block_of = self._block, bytearray(), 0
        headers = self._decoder.decode(block)
        ended = self._block_flags & END_STREAM
        stream = self._streams.get(self._number)
        if self._client:
            self._response(stream, headers, ended)
        elif self._number <= self._last:
            if stream is not None and not stream.ended and ended:
                self._ended(stream)  # trailers of a request
            else:
                self._glitch()
        else:
            self._request(headers, ended)

    def _request(self, headers: "dict[bytes, bytes]", ended: int) -> None:
        number = self._number
        if number % 2 == 0:
            raise WireFault(faults.PROTOCOL_ERROR, "a client must not use streams of the server")
        self._last = number
        stream = Stream(number, self._initial, self._now)
        stream.headers = headers
        self._streams[number] = stream
        stream.ended = stream.dropped = bool(ended)
        if len(self._streams) > self.bounds.streams:
            text = f"this connection has {self.bounds.streams} calls already: try again"
            self._refuse(stream, faults.EXHAUSTED, text)
        elif not headers.get(b"content-type", b"").startswith(CONTENT_TYPE) or headers.get(b":method") != b"POST":
            self._glitch()
            stream.dropped = True
            self._frame(HEADERS, END_HEADERS | END_STREAM, number, b"\x08\x03415")
            self._remove(stream)
        elif ended:
            self._refuse(stream, faults.INTERNAL, "the request has no message")

    def _ended(self, stream: Stream) -> None:
        """Handle the end of a request, or of the reply to our own."""
        stream.ended = True
        stream.since = self._now
        if stream.dropped:
            return
        stream.dropped = True
        if self._client:
            self._remove(stream)
            if stream.size != len(stream.body) and stream.failure is None:
                stream.failure = (faults.INTERNAL, "the reply is not complete")
            self.ready.append(stream)
        elif stream.size != len(stream.body):
            self._refuse(stream, faults.INTERNAL, "the request has no complete message")
        else:
            self.ready.append(stream)

    # The rest of the protocol

    def _settings(self, payload: bytearray) -> None:
        self._settled = True
        if self._flags & ACK:
            return
        for at in range(0, len(payload), 6):
            key, value = struct.unpack(">HI", payload[at : at + 6])
            if key == 4:
                if value > MAX_WINDOW:
                    raise WireFault(faults.FLOW_CONTROL_ERROR, "a window is too large")
                for stream in self._streams.values():
                    stream.window += value - self._initial
                self._initial = value
            elif (key == 5 and not MAX_FRAME <= value < 1 << 24) or (key == 2 and value > 1):
                raise WireFault(faults.PROTOCOL_ERROR, "a setting is not valid")
        self._frame(SETTINGS, ACK, 0)

    def _update(self, payload: bytearray) -> None:
        step = struct.unpack(">I", payload)[0] & MAX_WINDOW
        if not step:
            raise WireFault(faults.PROTOCOL_ERROR, "a window grows by nothing")
        if self._number == 0:
            self._window += step
            if self._window > MAX_WINDOW:
                raise WireFault(faults.FLOW_CONTROL_ERROR, "a window is too large")
            return
        self._check_begun()
        stream = self._streams.get(self._number)
        if stream is None or not stream.trailers:
            self._glitch()
        if stream is not None:
            stream.window += step
            if stream.window > MAX_WINDOW:
                raise WireFault(faults.FLOW_CONTROL_ERROR, "a window is too large")

    def _glitch(self, cost: int = 1) -> None:
        self._glitches -= cost
        if self._glitches < 0:
            raise WireFault(faults.ENHANCE_YOUR_CALM, "too many frames have no effect")

    # Sending

    def answer(self, stream: Stream, message: "bytes | bytearray") -> None:
        """Answer a call of `ready`."""
        if len(message) > self.bounds.reply:
            text = f"the reply has {len(message)} bytes, and this server sends {self.bounds.reply}"
            self.fail(stream, faults.EXHAUSTED, text)
            return
        if self._cancelled(stream):
            return
        self._free(stream)
        self._glitches = min(self.bounds.glitches, self._glitches + GLITCHES_BACK)
        self.used = stream.since = self._now
        stream.reply = struct.pack(">BI", 0, len(message)) + message
        trailers = bytearray()
        hpack.encode(trailers, b"grpc-status", b"0")
        stream.trailers = bytes(trailers)
        self._frame(HEADERS, END_HEADERS, stream.number, OK_HEAD)

    def fail(self, stream: Stream, status: int, text: str) -> None:
        """Answer a call with a gRPC status."""
        if self._cancelled(stream):
            return
        self._free(stream)
        block = bytearray(OK_HEAD)
        hpack.encode(block, b"grpc-status", str(status).encode())
        hpack.encode(block, b"grpc-message", percent(text))
        self._frame(HEADERS, END_HEADERS | END_STREAM, stream.number, block)
        if not stream.ended:
            self._frame(RST_STREAM, 0, stream.number, struct.pack(">I", faults.NO_ERROR))
        self._remove(stream)

    def _cancelled(self, stream: Stream) -> bool:
        """Return whether the peer has cancelled a call, which then needs no answer."""
        if stream.failure is not None:
            self._remove(stream)
        return stream.number not in self._streams

    def call(self, path: str, authority: str, message: "bytes | bytearray", token: str = "") -> Stream:
        """Send a request, on the side of the client. The stream is in `ready` when its reply is complete."""
        stream = Stream(self._next, self._initial, self._now)
        self._streams[self._next] = stream
        self._next += 2
        block = bytearray(b"\x83\x86")  # POST, http
        fields = ((b":path", path.encode()), (b":authority", authority.encode()), (b"te", b"trailers"))
        for name, value in fields:
            hpack.encode(block, name, value)
        hpack.encode(block, b"content-type", CONTENT_TYPE)
        if token:
            hpack.encode(block, b"authorization", b"Bearer " + token.encode())
        self._frame(HEADERS, END_HEADERS, stream.number, block)
        stream.reply = struct.pack(">BI", 0, len(message)) + message
        return stream

    def _response(self, stream: "Stream | None", headers: "dict[bytes, bytes]", ended: int) -> None:
        if stream is None:
            return
        stream.headers.update(headers)
        if not ended:
            return
        status = headers.get(b"grpc-status", b"")
        if status != b"0":
            text = str(headers.get(b"grpc-message", b""), "utf-8")
            code = int(status) if status.isdigit() else faults.UNAVAILABLE
            stream.failure = (code, text or "the server answers " + str(headers.get(b":status", b"?"), "utf-8"))
        self._ended(stream)

    def output(self) -> bytes:
        """Return the next bytes to send, and count them as sent; empty if there are none."""
        for number in sorted(self._streams):  # dicts of MicroPython have no order
            stream = self._streams[number]
            if stream.reply or stream.trailers:
                self._write(stream)
        if self._out and self._owed > 1024:
            self._repay()
        out, self._out = self._out, bytearray()
        return bytes(out)

    def _write(self, stream: Stream) -> None:
        """Write as much of a reply as the windows and the limit of unsent bytes permit."""
        while stream.sent < len(stream.reply):
            room = min(self._window, stream.window, MAX_FRAME, len(stream.reply) - stream.sent)
            room = min(room, self.bounds.output - len(self._out))
            if room <= 0:
                return
            piece = stream.reply[stream.sent : stream.sent + room]
            stream.sent += room
            stream.window -= room
            self._window -= room
            stream.since = self._now
            last = self._client and stream.sent == len(stream.reply)
            self._frame(DATA, END_STREAM if last else 0, stream.number, piece)
        stream.reply = b""
        if stream.trailers:
            self._frame(HEADERS, END_HEADERS | END_STREAM, stream.number, stream.trailers)
            if not stream.ended:
                self._frame(RST_STREAM, 0, stream.number, struct.pack(">I", faults.NO_ERROR))
            self._remove(stream)

    def tick(self, now: int) -> None:
        """Apply the time limits."""
        self._now = now
        if self.over:
            return
        self._glitches = min(self.bounds.glitches, self._glitches + 1)
        bounds = self.bounds
        if not self._settled and now - self.began > bounds.handshake_ms:
            self._end(faults.NO_ERROR, "the handshake takes too long")
        elif not self.trusted and now - self.began > bounds.authentication_ms:
            self._end(faults.NO_ERROR, "the peer has not authenticated itself")
        elif (self._block_of or self._head) and now - self.heard > bounds.request_ms:
            self._end(faults.NO_ERROR, "a frame takes too long")
        elif self._pinged and now - self._pinged > bounds.answer_ms:
            self._end(faults.NO_ERROR, "the peer does not answer")
        elif not self._pinged and now - self.heard > bounds.silence_ms:
            self._pinged = now
            self._frame(PING, 0, 0, b"micro...")
        for stream in tuple(self._streams.values()):
            if not self._client and not stream.ended and now - stream.since > bounds.request_ms:
                self._refuse(stream, faults.DEADLINE, "the request takes too long to arrive")
            elif stream.trailers and now - stream.since > bounds.stall_ms:
                self._frame(RST_STREAM, 0, stream.number, struct.pack(">I", faults.CANCEL))
                self._remove(stream)

    def close(self, text: str) -> None:
        """End the connection in order: GOAWAY is in the last `output`."""
        self._end(faults.NO_ERROR, text)

    def fail_all(self) -> "list[Stream]":
        """Forget all calls after the connection was lost, and return them: their owners wait, or carry them out."""
        streams = list(self._streams.values())
        self.over = self.over or "the connection was lost"
        for stream in streams:
            stream.failure = (faults.UNAVAILABLE, self.over)
            self._remove(stream)
        return streams

    def _end(self, code: int, text: str) -> None:
        if self.over:
            return
        self.over = text
        self._frame(GOAWAY, 0, 0, struct.pack(">II", self._last, code) + text.encode())

    def _remove(self, stream: Stream) -> None:
        self._free(stream)
        self._streams.pop(stream.number, None)
        if self._leaving and not self._streams:
            self.over = self.over or LEFT

    def _free(self, stream: Stream) -> None:
        self._budget.left += stream.held
        stream.held = 0
        if not self._client:
            stream.body = bytearray()

    def _repay(self) -> None:
        owed, self._owed = self._owed, 0
        self._frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", owed))

    def _frame(self, kind: int, flags: int, number: int, payload: "bytes | bytearray" = b"") -> None:
        size = len(payload)
        self._out += struct.pack(">BHBBI", size >> 16, size & 0xFFFF, kind, flags, number)
        self._out += payload


def failure_of(stream: Stream) -> "CallFailure | None":
    """Return why a call of our own has failed, None if it has not."""
    return None if stream.failure is None else CallFailure(stream.failure[0], stream.failure[1])


def percent(text: str) -> bytes:
    """Encode a text for grpc-message: printable ASCII, everything else as %XX."""
    out = bytearray()
    for byte in text.encode()[:512]:
        if 32 <= byte < 127 and byte != 37:
            out.append(byte)
        else:
            out += f"%{byte:02X}".encode()
    return bytes(out)
