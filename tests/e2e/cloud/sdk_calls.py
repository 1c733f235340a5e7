"""Calls that a cloud has recorded, see tests.e2e.cloud.sdk_recorded."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from cloud.services.target import SERVICES
from rpc.api.convert.names import python_name

FILE: Final = "TESTS_CALLS"  # environment variable: the file of the records, one line of JSON for each


class Call(NamedTuple):
    """A call that has ended."""

    path: str  # package.Service/Method
    status: int | None  # None if the client disconnected
    sent: int  # bytes of the responses


def calls(file: Path) -> list[Call]:
    """Return the recorded calls."""
    return [Call(*json.loads(line)) for line in file.read_text().splitlines()]


def answered(noted: Iterable[Call]) -> set[str]:
    """Return the calls that ended with OK, or that sent a response before their stream ended."""
    return {call.path for call in noted if call.status == 0 or call.sent > 0}


def refused(noted: Iterable[Call], status: int) -> set[str]:
    """Return the calls that ended with `status`."""
    return {call.path for call in noted if call.status == status}


def is_served(service: str, call: str) -> bool:
    """Return whether this cloud serves a published call; other calls are refused with an explanation."""
    return service in SERVICES and hasattr(SERVICES[service], python_name(call))
