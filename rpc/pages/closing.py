"""The end of a WebSocket: the reason in its close frame, and the errors of sending after it."""

from __future__ import annotations

from typing import Final

import trio
from starlette import websockets

MAX_REASON: Final = 123  # bytes; RFC 6455 5.5: a control frame has 125, of which the code takes two

DISCONNECTED: Final[tuple[type[Exception], ...]] = (
    websockets.WebSocketDisconnect,
    getattr(websockets, "WebSocketDisconnected", websockets.WebSocketDisconnect),  # of later sends
    OSError,
    trio.BrokenResourceError,
    trio.ClosedResourceError,
)
"""Errors of sending to a WebSocket whose peer has disconnected, which the task that receives notices as well."""


def close_reason(text: str) -> str:
    """Return the beginning of `text` that fits into a close frame, without half a character at its end."""
    return text.encode()[:MAX_REASON].decode(errors="ignore")
