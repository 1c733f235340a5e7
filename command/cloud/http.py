"""HTTP requests to the cloud, for what is not a call: large files, and certificates."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from typing import Any, Final

from command.cloud import login
from command.connection import Connection
from command.http import exchange, short_exchange
from schema import ErrorKind, MachineError

_KINDS: Final = {
    400: ErrorKind.INVALID,
    401: ErrorKind.UNAUTHENTICATED,
    403: ErrorKind.PERMISSION,
    404: ErrorKind.NOT_FOUND,
    409: ErrorKind.PRECONDITION,
    429: ErrorKind.EXHAUSTED,
    503: ErrorKind.UNAVAILABLE,
}


async def send_file(path: str, pieces: AsyncIterator[bytes], size: int) -> Any:
    """Send a file of `size` bytes with POST to the cloud that the user has logged in to, and return the JSON answer.

    It may take any time, as long as the cloud accepts data. Raises Unreachable, or MachineError with the reason of the
    cloud.
    """
    headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
    return _read(*await exchange(_login(), "POST", path, headers, pieces))


async def get(path: str, *, signed_in: bool = True) -> tuple[int, bytes]:
    """Send a GET request, without the key unless `signed_in`, and return status and body of any answer.

    Raises Unreachable, or MachineError if the key is refused.
    """
    return await short_exchange(_login(), "GET", path, signed_in=signed_in)


def _login() -> Connection:
    return login.load(os.environ).connection()


def _read(status: int, content: bytes) -> Any:
    try:
        reply = json.loads(content)
    except (ValueError, RecursionError):
        text = content[:200].decode(errors="replace").strip()
        raise MachineError(f"the cloud answered with HTTP status {status}: {text}", kind=ErrorKind.INTERNAL) from None
    if status >= 300:
        raise MachineError(str(reply.get("error", status)), kind=_KINDS.get(status, ErrorKind.INTERNAL))
    return reply
