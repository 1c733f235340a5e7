"""Messages on the control channel: one line of JSON with a request, then lines of JSON with its replies. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from schema import ErrorKind, MachineError

MAX_LINE: Final = 256 * 1024
"""Bytes of a request or reply, with the line feed. A report has at most 64 KiB."""


class ConsoleRequest(msgspec.Struct, frozen=True):
    """A command with its arguments."""

    command: str
    arguments: dict[str, Any] = {}


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value, or the error that ended the command; `end` after the last value."""

    value: Any = None
    error: str = ""
    remedy: str = ""
    kind: str = ""
    end: bool = False


def encode(message: ConsoleRequest | Reply) -> bytes:
    """Return a message as a line. EXHAUSTED if it is longer than MAX_LINE."""
    line = msgspec.json.encode(message) + b"\n"
    if len(line) > MAX_LINE:
        raise MachineError(f"the message has {len(line)} bytes, and {MAX_LINE} are allowed", kind=ErrorKind.EXHAUSTED)
    return line


def decode_request(line: bytes) -> ConsoleRequest:
    """Return the request in a line; INVALID if it has none."""
    try:
        return msgspec.json.decode(line, type=ConsoleRequest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MachineError(
            f"the request is not valid: {error}",
            kind=ErrorKind.INVALID,
            remedy='write one line such as {"command": "status"}',
        ) from None


def decode_reply(line: bytes) -> Reply:
    """Return the reply in a line; INTERNAL if it has none."""
    try:
        return msgspec.json.decode(line, type=Reply)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MachineError(
            f"the answer of machine-agent is not valid: {error}",
            kind=ErrorKind.INTERNAL,
            remedy="use the `machine` command of the same version as machine-agent",
        ) from None


def failure(error: MachineError) -> Reply:
    """Return the reply for an error."""
    return Reply(error=error.message, remedy=error.remedy, kind=error.kind.value, end=True)


def raised(reply: Reply) -> MachineError:
    """Return the error in a reply."""
    kinds: Mapping[str, ErrorKind] = {kind.value: kind for kind in ErrorKind}
    return MachineError(reply.error, kind=kinds.get(reply.kind, ErrorKind.INTERNAL), remedy=reply.remedy)
