"""Text for cells of CSV files, which people open in spreadsheets. Pure."""

from __future__ import annotations

from typing import Final

_BEGIN: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def harmless(text: str) -> str:
    """`text` so that no spreadsheet takes it for a formula: with an apostrophe before it (OWASP: CSV injection)."""
    return f"'{text}" if text.lstrip(" \u00a0").startswith(_BEGIN) else text
