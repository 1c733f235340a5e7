"""The organization that a task works for: waiting transactions of organizations take turns.

It is stored in the context of a task, and child tasks inherit it. The cloud's own work, such as evaluating triggers,
has its own queue, "".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_organization: Final[ContextVar[str]] = ContextVar("organization", default="")


def organization() -> str:
    """Return the organization that this task works for; "" for the cloud itself."""
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
