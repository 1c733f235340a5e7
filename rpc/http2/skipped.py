"""Stream ids that a client has skipped by opening a higher one first (RFC 9113 section 5.1.1).

A client that writes to one connection from several threads may send the frames of stream 79 before those of stream 77.
The connection decides whether 77 is still served. To serve or reset it, the connection must remember skipped ids.
"""

from __future__ import annotations

from typing import TypeAlias

Piece: TypeAlias = tuple[bytes, int, bool]
"""DATA received before its HEADERS: bytes, flow-controlled length, whether it ends the request."""

_PIECE = 128  # bytes counted for a piece in addition to its data


class Skipped:
    """Set of the `most` newest skipped ids, with at most `room` bytes of DATA received before their HEADERS."""

    __slots__ = ("_most", "_pieces", "_room", "forgotten")

    def __init__(self, most: int, room: int) -> None:
        self.forgotten = 0  # highest id dropped because of `most`; ids up to it may be unanswered
        self._most = most
        self._room = room
        self._pieces: dict[int, list[Piece]] = {}

    def __contains__(self, sid: int) -> bool:
        return sid in self._pieces

    def __len__(self) -> int:
        return len(self._pieces)

    def add(self, start: int, stop: int) -> None:
        """Add the odd ids from `start` up to, not including, `stop`; drop the oldest ids beyond the limit."""
        first = max(start, stop - 2 * self._most)
        if first > start:
            self.forgotten = first - 2
        for sid in range(first, stop, 2):
            self._pieces[sid] = []
        while len(self._pieces) > self._most:
            oldest = next(iter(self._pieces))
            self.take(oldest)
            self.forgotten = max(self.forgotten, oldest)

    def keep(self, sid: int, piece: Piece) -> bool:
        """Store DATA of a skipped id until its HEADERS arrive. Returns False and stores nothing if there is no room."""
        cost = len(piece[0]) + _PIECE
        if cost > self._room:
            return False
        self._room -= cost
        self._pieces[sid].append(piece)
        return True

    def take(self, sid: int) -> list[Piece]:
        """Remove an id and return its DATA; an empty list if it is not in the set."""
        pieces = self._pieces.pop(sid, [])
        self._room += sum(len(data) + _PIECE for data, _, _ in pieces)
        return pieces
