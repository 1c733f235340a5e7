"""Close codes and reasons of the cloud's WebSockets."""

from __future__ import annotations

from typing import Any, Final

from schema.errors import ErrorKind, MachineError

RECONNECT: Final = 4401  # private close codes, after HTTP's. The key's permissions have changed: reconnect
REFUSED: Final = 4403
GONE: Final = 4404
FAILED: Final = 1011  # RFC 6455 7.4.1
CODES: Final = {
    ErrorKind.UNAUTHENTICATED: REFUSED,
    ErrorKind.PERMISSION: REFUSED,
    ErrorKind.NOT_FOUND: GONE,
}
MAX_REASON: Final = 123  # bytes; RFC 6455 5.5: a control frame has 125, of which the code takes two


def close_frame_of(error: MachineError) -> tuple[int, str]:
    """Return code and reason of the close frame for an error."""
    return CODES.get(error.kind, FAILED), cut(str(error))


def cut(reason: str) -> str:
    """Truncate a reason to the size of a close frame."""
    return reason.encode()[:MAX_REASON].decode(errors="ignore")


def first_leaf(group: BaseExceptionGroup[Any]) -> Any:
    """Return the first leaf of an exception group."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
