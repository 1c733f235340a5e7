"""Arrangements of the cards with which people control a part, for everyone who opens its page."""

from __future__ import annotations

from cloud.store.sql import Sql


def arrangement(sql: Sql, part: str) -> str:
    """Return the arrangement of a part as JSON; empty if its cards were not arranged."""
    row = sql.row("SELECT cards FROM arrangements WHERE part_id = ?", part)
    return "" if row is None else row["cards"]


def arrange(sql: Sql, part: str, cards: str) -> None:
    """Store the arrangement of a part."""
    sql.run(
        """
        INSERT INTO arrangements (part_id, cards) VALUES (?, ?)
        ON CONFLICT (part_id) DO UPDATE SET cards = excluded.cards
        """,
        part,
        cards,
    )
