"""The generated reference page is current."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from hal.boards.catalogue import boards

ROOT = Path(__file__).resolve().parents[4]


def test_the_reference_of_boards_is_current() -> None:
    spec = importlib.util.spec_from_file_location("gen_board_reference", ROOT / "tools" / "gen_board_reference.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    written = (ROOT / "docs" / "reference" / "boards.md").read_text()
    assert written == generator.page(), "run make generate"
    for board in boards():
        assert f"## {board.title}\n" in written
        for note in board.unverified:
            assert f"**Unverified:** {note}" in written
