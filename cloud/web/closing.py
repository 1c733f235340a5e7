"""How WebSockets of the cloud end, in codes and words."""

from __future__ import annotations

from typing import Any, Final

from schema.errors import ErrorKind, MachineError

AGAIN: Final = 4401  # close codes: private use, after HTTP's. The rights of the key have changed: ask anew
REFUSED: Final = 4403
GONE: Final = 4404
FAILED: Final = 1011  # RFC 6455 7.4.1
CODES: Final = {
    ErrorKind.UNAUTHENTICATED: REFUSED,
    ErrorKind.PERMISSION: REFUSED,
    ErrorKind.NOT_FOUND: GONE,
}
MAX_REASON: Final = 123  # bytes; RFC 6455 5.5: a control frame has 125, two are the code's


def farewell(error: MachineError) -> tuple[int, str]:
    """Code and reason for the close frame."""
    return CODES.get(error.kind, FAILED), cut(str(error))


def cut(reason: str) -> str:
    """As much of a reason as a close frame has room for."""
    return reason.encode()[:MAX_REASON].decode(errors="ignore")


def first_of(group: BaseExceptionGroup[Any]) -> Any:
    """The first leaf of a group."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
