"""The methods of an SDK client that a walk has called and whose answers it has checked."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from grpclib import GRPCError, Status

from cloud.services.target import SERVICES
from cloud.services.unbuilt import reason_unsupported


@contextmanager
def left_open() -> Iterator[None]:
    """Ignore the warning about a file that a method of the SDK writes and leaves open."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield


class Seen:
    """Names of methods whose answers were compared with the expected ones."""

    def __init__(self) -> None:
        self.methods: set[str] = set()

    def __call__(self, method: str, got: Any, expected: Any) -> None:
        """Check the answer of a method, or a value that shows its effect."""
        assert got == expected, f"{method}: {got!r}, not {expected!r}"
        self.methods.add(method)

    async def refused(self, call: Awaitable[Any], status: Status, words: str = "") -> None:
        """Check that a call is refused. It does not count as a check of an answer."""
        with pytest.raises(GRPCError) as caught:
            await call
        assert caught.value.status is status, caught.value
        assert words in str(caught.value.message), caught.value

    async def unbuilt(self, path: str, method: str, call: Awaitable[Any]) -> None:
        """Check that a method that this cloud lacks is refused with the explanation in cloud.services.unbuilt."""
        text = reason_unsupported(path, frozenset(SERVICES))
        assert text, path
        await self.refused(call, Status.UNIMPLEMENTED, text)
        self.methods.add(method)


def methods_of(cls: type) -> set[str]:
    """Return the public methods of a client's class."""
    return {name for name, _ in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")}
