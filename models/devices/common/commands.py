"""Validation of the arguments of `do_command`. Pure."""

from __future__ import annotations

import base64
import binascii
import difflib
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

from models.devices.common.encodings import Encoding
from schema import ErrorKind, MachineError


class Keys:
    """The keys of a command. INVALID if a key is not in `known`."""

    def __init__(self, command: Mapping[str, Any], allowed: Sequence[str], name: str) -> None:
        self._command = command
        self.remedy = f"use {', '.join(allowed)}"
        for key in command:
            if key not in allowed:
                similar = difflib.get_close_matches(key, allowed, 1)
                raise MachineError(
                    f"{name} has no command {key!r}",
                    kind=ErrorKind.INVALID,
                    remedy=f"did you mean {similar[0]}?" if similar else self.remedy,
                )

    def choice(self, key: str, allowed: Sequence[str], default: str) -> Encoding:
        """Return the encoding named by `key`. INVALID if it is not in `allowed`."""
        value = self._command.get(key, default)
        if value not in allowed:
            _refuse(key, value, f"use one of {', '.join(allowed)}")
        return cast(Encoding, value)


def whole(command: Mapping[str, Any], key: str, minimum: int, maximum: int, default: int | None = None) -> int:
    """Return a whole number, which may also be a float (as on the wire) or text such as 0x81. INVALID otherwise."""
    value = command.get(key, default)
    try:
        number = int(value, 0) if isinstance(value, str) else int(value) if int(value) == value else None
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or isinstance(value, bool) or not minimum <= number <= maximum:
        _refuse(key, value, f"use a whole number from {minimum} to {maximum}")
    return number


def seconds(command: Mapping[str, Any], key: str, default: float) -> float:
    """Return a time limit in seconds. INVALID if it is not above 0."""
    value = command.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value > 0):
        _refuse(key, value, "use a number of seconds above 0")
    return float(value)


def decoded(value: object, encoding: Encoding, key: str) -> bytes:
    """Decode the data in a command. INVALID if it is not in the encoding."""
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        _refuse(key, value, "use text")
    try:
        return base64.b64decode(value, validate=True) if encoding == "base64" else value.encode(encoding)
    except (binascii.Error, UnicodeEncodeError) as error:
        _refuse(key, value, f"use {encoding} text", error)


def encoded(data: bytes, encoding: Encoding) -> str:
    """Encode data for an answer; bytes that are not valid in the encoding are replaced."""
    return base64.b64encode(data).decode() if encoding == "base64" else data.decode(encoding, errors="replace")


def _refuse(key: str, value: object, remedy: str, cause: Exception | None = None) -> NoReturn:
    raise MachineError(f"{key} is {value!r}", kind=ErrorKind.INVALID, remedy=remedy) from cause
