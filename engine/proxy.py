"""Proxy classes for resources in modules and on remotes: every method of the base class is an RPC."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator
from functools import cache
from typing import Any

from engine.components.media.older_cameras import COMPLETED, OLDER, is_missing
from engine.resource import Resource
from rpc.api import ApiClient, methods_for
from schema import MachineError


class Proxied(Resource):
    """Mixin that `proxy_of` puts before an API's base class."""

    def remote(self) -> tuple[ApiClient, str]:
        """Return the client and the resource's name there; raises MachineError (UNAVAILABLE) if not connected."""
        raise NotImplementedError

    def note(self, method: str, result: Any) -> None:
        """Receive the result of each unary call; does nothing by default."""


@cache
def proxy_of(base: type[Resource], mixin: type[Proxied]) -> type[Resource]:
    """Return a class derived from `mixin` and `base` that forwards each method of the API."""
    methods: dict[str, Any] = {}
    for name, method in methods_for(base.API).items():
        if hasattr(base, name):
            methods[name] = _stream(base, name) if method.server_streaming else _call(base, name)
    return type(f"{mixin.__name__}{base.__name__}", (mixin, base), methods)


def _arguments(signature: inspect.Signature, proxy: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = dict(signature.bind(proxy, *args, **kwargs).arguments)
    del bound[next(iter(signature.parameters))]
    return bound


def _call(base: type[Resource], name: str) -> Any:
    signature = inspect.signature(getattr(base, name))
    replacement, complete_result = OLDER.get((base, name)), COMPLETED.get((base, name))

    async def call(self: Proxied, *args: Any, **kwargs: Any) -> Any:
        client, remote_name = self.remote()
        arguments = _arguments(signature, self, args, kwargs)
        try:
            result = await client.call_as(base, remote_name, name, **arguments)
        except MachineError as error:
            if replacement is None or not is_missing(error):
                raise
            result = await replacement(client, remote_name, arguments)
        if complete_result is not None:
            result = complete_result(result)
        self.note(name, result)
        return result

    return _with_signature(call, base, name)


def _stream(base: type[Resource], name: str) -> Any:
    signature = inspect.signature(getattr(base, name))

    def stream(self: Proxied, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        client, remote_name = self.remote()
        results: AsyncGenerator[Any, None] = client.stream_as(
            base, remote_name, name, **_arguments(signature, self, args, kwargs)
        )
        return results

    return _with_signature(stream, base, name)


def _with_signature(function: Any, base: type[Resource], name: str) -> Any:
    function.__name__ = name
    function.__signature__ = inspect.signature(getattr(base, name))
    function.__doc__ = getattr(base, name).__doc__
    return function
