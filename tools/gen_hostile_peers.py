"""Write docs/reference/hostile-peers.md from the tables of attacks in tests/e2e/hostile."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "hostile-peers.md"


def page() -> str:
    """Return the text of the page."""
    from tests.e2e.hostile.table import document

    return document()
