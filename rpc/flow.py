"""What a connection knows about one of its streams: both windows, which sides are closed, and who is told."""

from __future__ import annotations

from typing import Any, Protocol

import trio

from rpc.errors import FLOW_CONTROL_ERROR, StreamFault
from rpc.frames import MAX_WINDOW


class Receiver(Protocol):
    """A call, or an HTTP exchange, as its stream sees it."""

    def feed(self, data: bytes, flow: int) -> None:
        """Bytes of the body and what they cost of the window, which the receiver gives back with `consumed`."""

    def end(self) -> None:
        """The body has ended."""


class Stream:
    """State of one stream. `receiver` is told what arrives; at most one task sends at a time."""

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
        self.receive_window = receive_window  # what the peer may still send
        self.owed = 0  # consumed and not yet given back
        self.local_closed = False  # we have sent END_STREAM or RST_STREAM, or the peer has reset the stream
        self.remote_closed = False
        self.lock: trio.Lock | None = None  # made when a message does not fit at once
        self.parked: trio.lowlevel.Task | None = None  # the sender that waits for window
        self.expected: int | None = None  # bytes that content-length still announces
        self.tail = b""  # end of a body that waits for window
        self.finished = False  # the receiver is done and only the tail is left

    def widen(self, n: int) -> None:
        """The peer gives `n` bytes of window; StreamFault if it would be larger than HTTP/2 knows."""
        self.send_window += n
        if self.send_window > MAX_WINDOW:
            raise StreamFault(FLOW_CONTROL_ERROR, "flow control", f"window of {self.send_window} bytes")
        if self.send_window > 0:
            self.wake()

    def wake(self) -> None:
        """Let a parked sender look again."""
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
