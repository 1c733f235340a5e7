"""Write the life cycle diagram in docs/design/nursery_graph.md from the table in nursery_graph/lifecycle.py."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "design" / "nursery_graph.md"
BEGIN = "```mermaid\n"
END = "```\n"


def page() -> str:
    """Return the page with the diagram replaced."""
    from nursery_graph.lifecycle import mermaid

    before, begin, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    return before + begin + mermaid() + end + after
