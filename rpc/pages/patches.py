"""Selection of the parts of a page that must be sent again after a change. Pure.

A piece is one template macro with its arguments; its first element has the id of the piece, which the browser replaces.
The last state sent to a client is kept as facts, not as HTML, so that unchanged pieces are not rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """Live part of a page: element id, macro, arguments, and the facts whose change requires sending it."""

    id: str
    macro: str
    arguments: tuple[object, ...]
    facts: object
    inside: str = ""  # id of the piece that contains it


class Patcher:
    """State of one client; `patch` returns the changed pieces."""

    def __init__(self, render: Callable[[Piece], str]) -> None:
        self._render = render
        self._sent: dict[str, object] = {}

    def patch(self, pieces: Iterable[Piece]) -> dict[str, str]:
        """Return HTML by id of every piece whose facts have changed since the last call.

        List containers before the pieces inside them; pieces inside a changed container are sent with it.
        """
        html: dict[str, str] = {}
        sent: dict[str, object] = {}
        for piece in pieces:
            sent[piece.id] = piece.facts
            if piece.inside not in html and (piece.id not in self._sent or self._sent[piece.id] != piece.facts):
                html[piece.id] = self._render(piece)
        self._sent = sent
        return html
