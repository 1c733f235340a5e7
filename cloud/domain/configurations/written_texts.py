"""Texts of configurations and fragments as people wrote them, with comments, next to the documents that they mean.

A text belongs to the content of a document and not to its revision. It is stored before the document is saved, so that
a save that stops halfway loses no comment, and an old document that is saved again has its comments again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal

from cloud.store.sql import Sql

Kind = Literal["part", "fragment"]


def keep(sql: Sql, kind: Kind, subject: str, content: str, text: str) -> None:
    """Store the text of a document with this content, instead of an earlier one; an empty text deletes it."""
    if not text:
        sql.run("DELETE FROM written_texts WHERE kind = ? AND subject = ? AND content = ?", kind, subject, content)
        return
    sql.run(
        "INSERT INTO written_texts (kind, subject, content, text) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (kind, subject, content) DO UPDATE SET text = excluded.text",
        kind,
        subject,
        content,
        text,
    )


def text_of(sql: Sql, kind: Kind, subject: str, document: Mapping[str, Any]) -> str:
    """Return the text that means `document`; empty if there is none."""
    of = "FROM written_texts WHERE kind = ? AND subject = ?"
    if sql.row(f"SELECT 1 {of} LIMIT 1", kind, subject) is None:  # most have none: that costs no digest
        return ""
    row = sql.row(f"SELECT text {of} AND content = ?", kind, subject, content_of(document))
    return "" if row is None else str(row["text"])


def content_of(document: Mapping[str, Any]) -> str:
    """Return the same text for documents that are equal, in any order of keys and spelling of numbers."""
    ordered = json.dumps(_plain(document), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(ordered.encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
