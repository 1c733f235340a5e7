"""The organization that a task works for: waiting transactions of organizations take turns.

It is stored in the context of a task, and child tasks inherit it. The cloud's own work, such as evaluating triggers,
has its own queue, "".
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

_organization: Final[ContextVar[str]] = ContextVar("organization", default="")


def organization() -> str:
    """Return the organization that this task works for; "" for the cloud itself."""
    return _organization.get()


class working_for:
    """Work for an organization while the context is open. A class costs less memory than a generator."""

    __slots__ = ("_before", "_name")

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._before = _organization.get()
        _organization.set(self._name)

    def __exit__(self, *_: object) -> None:
        _organization.set(self._before)
