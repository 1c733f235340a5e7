"""Finds the row of a call in the tables of the published API. Pure."""

from micro.wire.faults import UNIMPLEMENTED, CallFailure
from micro.wire.messages import SERVICES


def row_of(api: str, name: str) -> "tuple[str, str, int, int, bool]":
    """Return the call of an API."""
    for _, kind, calls in SERVICES:
        if kind == api:
            for call in calls:
                if call[0] == name:
                    return call
    raise CallFailure(UNIMPLEMENTED, f"{api} does not have {name}")
