"""Stream ids that a client has passed over: it began a higher one first (RFC 9113 section 5.1.1).

A client that writes to one connection from several threads may send the frames of stream 79 before those of stream 77.
Whether 77 is still served is the connection's choice; that somebody hears of it needs a memory of what was passed over.
"""

from __future__ import annotations

from typing import TypeAlias

Piece: TypeAlias = tuple[bytes, int, bool]
"""DATA that came before its HEADERS: bytes, flow-controlled length, whether it ends the request."""

_PIECE = 128  # bytes that a piece costs besides its data


class Skipped:
    """The `most` newest ids passed over, and at most `room` bytes of DATA that came before their HEADERS."""

    __slots__ = ("_most", "_pieces", "_room", "forgotten")

    def __init__(self, most: int, room: int) -> None:
        self.forgotten = 0  # the highest id that was dropped beyond `most`; ids up to it may have had no answer
        self._most = most
        self._room = room
        self._pieces: dict[int, list[Piece]] = {}

    def __contains__(self, sid: int) -> bool:
        return sid in self._pieces

    def __len__(self) -> int:
        return len(self._pieces)

    def add(self, start: int, stop: int) -> None:
        """Remember the odd ids from `start` up to, not including, `stop`; the oldest beyond the bound are forgotten."""
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
        """Keep DATA of a remembered id until its HEADERS come. False, and nothing is kept, if there is no room."""
        cost = len(piece[0]) + _PIECE
        if cost > self._room:
            return False
        self._room -= cost
        self._pieces[sid].append(piece)
        return True

    def take(self, sid: int) -> list[Piece]:
        """Remove an id and return its DATA; nothing for one that is not remembered."""
        pieces = self._pieces.pop(sid, [])
        self._room += sum(len(data) + _PIECE for data, _, _ in pieces)
        return pieces
