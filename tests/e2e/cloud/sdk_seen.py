"""What a walk through a client of the SDK has called and looked at."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from grpclib import GRPCError, Status

from cloud.services.target import SERVICES
from cloud.services.unbuilt import sentence


@contextmanager
def left_open() -> Iterator[None]:
    """Around a method of the SDK that writes a file: it leaves it to the collector to close it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield


class Seen:
    """Names of methods whose answers were compared with what they have to be."""

    def __init__(self) -> None:
        self.methods: set[str] = set()

    def __call__(self, method: str, got: Any, wanted: Any) -> None:
        """The answer of a method, or what shows that it had its effect."""
        assert got == wanted, f"{method}: {got!r}, not {wanted!r}"
        self.methods.add(method)

    async def refused(self, call: Awaitable[Any], status: Status, words: str = "") -> None:
        """A call that must not succeed. It does not count as the look at an answer."""
        with pytest.raises(GRPCError) as caught:
            await call
        assert caught.value.status is status, caught.value
        assert words in str(caught.value.message), caught.value

    async def unbuilt(self, path: str, method: str, call: Awaitable[Any]) -> None:
        """A method that this cloud does not have, and says so in a sentence of cloud.services.unbuilt."""
        text = sentence(path, frozenset(SERVICES))
        assert text, path
        await self.refused(call, Status.UNIMPLEMENTED, text)
        self.methods.add(method)


def methods_of(cls: type) -> set[str]:
    """The public methods of a client's class."""
    return {name for name, _ in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")}
