"""Close codes and reasons of the cloud's WebSockets."""

from __future__ import annotations

from typing import Any, Final

from rpc.pages import close_reason
from schema import ErrorKind, MachineError

RECONNECT: Final = 4401  # private close codes, after HTTP's. The key's permissions have changed: reconnect
REFUSED: Final = 4403
GONE: Final = 4404
FAILED: Final = 1011  # RFC 6455 7.4.1
CODES: Final = {
    ErrorKind.UNAUTHENTICATED: REFUSED,
    ErrorKind.PERMISSION: REFUSED,
    ErrorKind.NOT_FOUND: GONE,
}


def close_frame_of(error: MachineError) -> tuple[int, str]:
    """Return code and reason of the close frame for an error."""
    return CODES.get(error.kind, FAILED), close_reason(str(error))


def first_leaf(group: BaseExceptionGroup[Any]) -> Any:
    """Return the first leaf of an exception group."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
