"""Patches of a live page: what is sent again."""

from __future__ import annotations

from rpc.pages.patches import Patcher, Piece


def rendered(piece: Piece) -> str:
    return f"{piece.id}={piece.facts}"


def test_only_changed_pieces_are_sent_and_inner_ones_with_their_container() -> None:
    patcher = Patcher(rendered)

    def patch(outer: int, inner: int, other: int) -> dict[str, str]:
        pieces = (("outer", outer, ""), ("inner", inner, "outer"), ("other", other, ""))
        return patcher.patch(Piece(name, "macro", (), facts, inside) for name, facts, inside in pieces)

    assert patch(1, 1, 1) == {"outer": "outer=1", "other": "other=1"}
    assert patch(1, 1, 1) == {}
    assert patch(1, 2, 1) == {"inner": "inner=2"}
    assert patch(2, 3, 1) == {"outer": "outer=2"}
    assert patch(2, 3, 2) == {"other": "other=2"}
