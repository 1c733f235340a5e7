"""State of one HTTP/2 stream: both windows, which sides are closed, and the receiver."""

from __future__ import annotations

from typing import Any, Protocol

import trio

from rpc.errors import FLOW_CONTROL_ERROR, StreamFault
from rpc.http2.codec.frames import MAX_WINDOW


class Receiver(Protocol):
    """Call or HTTP exchange, as seen by its stream."""

    def feed(self, data: bytes, flow: int) -> None:
        """Receive bytes of the body; return `flow`, their flow-controlled size, with `consumed`."""

    def end(self) -> None:
        """Handle the end of the body."""


class Stream:
    """State of one stream. `receiver` gets incoming data; at most one task sends at a time."""

    __slots__ = (
        "expected",
        "finished",
        "local_closed",
        "lock",
        "owed",
        "parked",
        "receive_window",
        "receiver",
        "remote_closed",
        "send_window",
        "sid",
        "tail",
    )

    def __init__(self, sid: int, receiver: Any, send_window: int, receive_window: int) -> None:
        self.sid = sid
        self.receiver = receiver
        self.send_window = send_window  # may be negative after the peer's SETTINGS
        self.receive_window = receive_window  # bytes that the peer may still send
        self.owed = 0  # consumed bytes not yet returned to the window
        self.local_closed = False  # this side sent END_STREAM or RST_STREAM, or the peer reset the stream
        self.remote_closed = False
        self.lock: trio.Lock | None = None  # created when a message must wait
        self.parked: trio.lowlevel.Task | None = None  # sender that waits for window
        self.expected: int | None = None  # remaining bytes according to content-length
        self.tail = b""  # end of the response body, waiting for window
        self.finished = False  # the receiver is done and only the tail remains

    def widen(self, n: int) -> None:
        """Add `n` bytes to the send window; StreamFault if it exceeds the maximum of HTTP/2."""
        self.send_window += n
        if self.send_window > MAX_WINDOW:
            raise StreamFault(FLOW_CONTROL_ERROR, "flow control", f"window of {self.send_window} bytes")
        if self.send_window > 0:
            self.wake()

    def wake(self) -> None:
        """Wake the parked sender, if any, to check its window."""
        task, self.parked = self.parked, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    async def park(self) -> None:
        """Wait for `wake`."""
        self.parked = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._abort)

    def _abort(self, _: object) -> trio.lowlevel.Abort:
        self.parked = None
        return trio.lowlevel.Abort.SUCCEEDED
