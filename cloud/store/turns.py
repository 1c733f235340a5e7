"""For which organization a task works: transactions of organizations that wait take turns.

It is kept in the context of a task, which the tasks that it starts inherit. What the cloud does for itself, such as
evaluating triggers, has a line of its own, "".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_organization: Final[ContextVar[str]] = ContextVar("organization", default="")


def organization() -> str:
    """The organization that this task works for; "" for the cloud itself."""
    return _organization.get()


@contextmanager
def working_for(name: str) -> Iterator[None]:
    """Work for an organization while the context is open."""
    before = _organization.get()
    _organization.set(name)
    try:
        yield
    finally:
        _organization.set(before)
