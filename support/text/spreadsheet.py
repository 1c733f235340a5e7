"""Escaping of CSV cells against formula injection in spreadsheets. Pure."""

from __future__ import annotations

from typing import Final

_BEGIN: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def harmless_cell(text: str) -> str:
    """Prefix `text` with an apostrophe if a spreadsheet could interpret it as a formula (OWASP: CSV injection)."""
    return f"'{text}" if text.lstrip(" \u00a0").startswith(_BEGIN) else text
