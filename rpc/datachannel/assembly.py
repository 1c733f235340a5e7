"""Assembly of the packets of a call into messages, within limits: a data channel has no flow control for one call."""

from __future__ import annotations

import struct
from typing import Final

from rpc.errors import ENHANCE_YOUR_CALM, StreamFault
from rpc.inbox import PREFIX, Budget

MAX_ASSEMBLED: Final = 32 << 20
"""Bytes of the largest message; official clients and servers accept no larger ones over data channels."""

_pack_prefix = struct.Struct(">BI").pack


class Assembly:
    """Messages of one direction of a call, and the count of its unread bytes.

    A call may have `max_message` and `slack` bytes unread, and all calls of a channel together those of the budget.
    """

    __slots__ = ("_budget", "_max_message", "_partial", "_slack", "_unread")

    def __init__(self, budget: Budget, max_message: int, slack: int) -> None:
        self._budget = budget
        self._max_message = min(max_message, MAX_ASSEMBLED)
        self._slack = slack
        self._partial = bytearray()  # starts with room for the prefix unless it is empty
        self._unread = 0

    @property
    def incomplete(self) -> bool:
        """True after a packet that was not the last one of its message."""
        return bool(self._partial)

    def add(self, data: bytes, *, last: bool) -> bytes | bytearray | None:
        """Add a packet; return the message with its 5-byte prefix if it is complete. StreamFault beyond a limit."""
        size = len(data)
        total = size + max(0, len(self._partial) - PREFIX)
        if total > self._max_message:
            text = f"message of more than {self._max_message} bytes, the limit"
            raise StreamFault(ENHANCE_YOUR_CALM, "message size", text)
        budget = self._budget
        if self._unread + total + PREFIX > self._max_message + self._slack or budget.used + size > budget.limit:
            whose = "this call" if budget.used + size <= budget.limit else "all calls of this data channel"
            raise StreamFault(ENHANCE_YOUR_CALM, "buffered bytes", f"too many unread bytes of {whose}")
        if last and not self._partial:
            self._unread += size + PREFIX
            return _pack_prefix(0, size) + data
        if not self._partial:
            self._partial = bytearray(PREFIX)
        self._partial += data
        budget.used += size
        if not last:
            return None
        message, self._partial = self._partial, bytearray()
        budget.used -= total
        message[:PREFIX] = _pack_prefix(0, total)
        self._unread += len(message)
        return message

    def consumed(self, n: int) -> None:
        """Note that `n` bytes of messages, with their prefixes, were read."""
        self._unread -= n

    def drop(self) -> None:
        """Drop an incomplete message."""
        self._budget.used -= max(0, len(self._partial) - PREFIX)
        self._partial = bytearray()
