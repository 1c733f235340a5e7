"""The reason in the close frame of a WebSocket."""

from __future__ import annotations

from typing import Final

MAX_REASON: Final = 123  # bytes; RFC 6455 5.5: a control frame has 125, of which the code takes two


def close_reason(text: str) -> str:
    """Return the beginning of `text` that fits into a close frame, without half a character at its end."""
    return text.encode()[:MAX_REASON].decode(errors="ignore")
