"""Typed handles: a resource of the machine as its API's base class, wherever the machine is.

A call goes the way that clients' calls go, in memory or over the network, so a test sees what a client sees: the
arguments are converted, the errors are MachineError, a resource that is not ready is UNAVAILABLE.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable
from functools import cache
from typing import Any, TypeVar

from rpc.api.client import ApiClient, methods_for
from runtime.resource import Resource
from schema.names import ResourceName

ResourceT = TypeVar("ResourceT", bound=Resource)
Note = Callable[[str, str, Any], None]
"""Told of every result: resource, method, value."""


def make_handle(base: type[ResourceT], name: str, client: Callable[[], ApiClient], note: Note) -> ResourceT:
    """An object with the methods of `base`, whose calls go to the resource called `name` of the machine."""
    made: Any = base  # a class is hashable whatever its type hint
    handle = _handle_class(made)()
    handle.name = ResourceName(base.API, name)
    handle._client = client
    handle._note = note
    result: ResourceT = handle
    return result


class _Handle:
    name: ResourceName
    _client: Callable[[], ApiClient]
    _note: Note

    def __init__(self) -> None:
        """Nothing of a driver's life: it lives elsewhere."""

    def __repr__(self) -> str:
        return f"<handle of {self.name}>"


@cache
def _handle_class(base: type[Resource]) -> Any:
    methods: dict[str, Any] = {}
    for name, method in methods_for(base.API).items():
        if hasattr(base, name):
            methods[name] = _stream(base, name) if method.server_streaming else _call(base, name)
    return type(f"{base.__name__}Handle", (_Handle, base), methods)


def _arguments(signature: inspect.Signature, handle: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = dict(signature.bind(handle, *args, **kwargs).arguments)
    del bound[next(iter(signature.parameters))]
    return bound


def _call(base: type[Resource], name: str) -> Any:
    signature = inspect.signature(getattr(base, name))

    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        arguments = _arguments(signature, self, args, kwargs)
        result = await self._client().call_as(base, self.name.short, name, **arguments)
        self._note(self.name.short, name, result)
        return result

    return _dressed(call, base, name)


def _stream(base: type[Resource], name: str) -> Any:
    signature = inspect.signature(getattr(base, name))

    def stream(self: Any, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        arguments = _arguments(signature, self, args, kwargs)
        results: AsyncGenerator[Any, None] = self._client().stream_as(base, self.name.short, name, **arguments)
        return results

    return _dressed(stream, base, name)


def _dressed(function: Any, base: type[Resource], name: str) -> Any:
    function.__name__ = name
    function.__qualname__ = f"{base.__name__}Handle.{name}"
    function.__doc__ = getattr(base, name).__doc__
    return function
