"""Calls of our own between a cloud and its machines, whose messages are JSON, so that no code is generated for them.

The published API has no call for what they carry. They are not for programs of users, and may change.
"""

from __future__ import annotations

from typing import Final

SERIES: Final = "/machine.robot.v1.StatisticsService/Series"
"""From {"from", "to", "points"}, times in milliseconds since 1970, to what `History.series` returns."""

MAX_REQUEST: Final = 1024  # bytes


class Raw(bytes):
    """A message that is not parsed."""

    def SerializeToString(self) -> bytes:
        """Return the content of the message."""
        return bytes(self)

    @classmethod
    def FromString(cls, data: bytes) -> Raw:
        """Return a message with this content."""
        return cls(data)
