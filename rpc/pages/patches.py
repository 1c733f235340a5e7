"""Which parts of a page must be sent again when the facts have changed. Pure.

A piece is one macro of the templates with what it shows; its first element has the piece's id. The browser replaces the
element of that id. What a client was sent last is kept as facts, not as HTML, so that nothing unchanged is rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """A live part: its element's id, its macro and arguments, and the facts that decide whether it must be sent."""

    id: str
    macro: str
    arguments: tuple[object, ...]
    facts: object
    inside: str = ""  # id of the piece that contains it


class Patcher:
    """What one client has; `patch` gives what it lacks."""

    def __init__(self, render: Callable[[Piece], str]) -> None:
        self._render = render
        self._sent: dict[str, object] = {}

    def patch(self, pieces: Iterable[Piece]) -> dict[str, str]:
        """HTML by id of every piece whose facts differ from those sent before; containers come first."""
        html: dict[str, str] = {}
        sent: dict[str, object] = {}
        for piece in pieces:
            sent[piece.id] = piece.facts
            if piece.inside not in html and (piece.id not in self._sent or self._sent[piece.id] != piece.facts):
                html[piece.id] = self._render(piece)
        self._sent = sent
        return html
