"""Calls that a cloud has noted, see tests.e2e.cloud.sdk_recorded."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from cloud.services.target import SERVICES
from rpc.api.convert.names import python_name

FILE: Final = "TESTS_CALLS"  # environment variable: where they are noted, a line of JSON for each


class Call(NamedTuple):
    """One call that has ended."""

    path: str  # package.Service/Method
    status: int | None  # None if the client went away
    sent: int  # bytes of the answers


def calls(file: Path) -> list[Call]:
    """What was noted."""
    return [Call(*json.loads(line)) for line in file.read_text().splitlines()]


def answered(noted: Iterable[Call]) -> set[str]:
    """The calls that were answered: with OK, or with something before their stream was ended."""
    return {one.path for one in noted if one.status == 0 or one.sent > 0}


def refused(noted: Iterable[Call], status: int) -> set[str]:
    """The calls that ended with another status."""
    return {one.path for one in noted if one.status == status}


def is_served(service: str, call: str) -> bool:
    """Whether this cloud has a published call; what it has not is refused in a sentence."""
    return service in SERVICES and hasattr(SERVICES[service], python_name(call))
