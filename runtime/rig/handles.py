"""Typed handles: a resource of the machine as its API's base class, wherever the machine is.

A call goes the way that clients' calls go, in memory or over the network, so a test sees what a client sees: the
arguments are converted, the errors are MachineError, a resource that is not ready is UNAVAILABLE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from rpc.api.client import ApiClient
from runtime.proxy import Proxied, proxy_of
from runtime.resource import Resource
from schema.names import ResourceName

ResourceT = TypeVar("ResourceT", bound=Resource)
Note = Callable[[str, str, Any], None]
"""Told of every result: resource, method, value."""


def make_handle(base: type[ResourceT], name: str, client: Callable[[], ApiClient], note: Note) -> ResourceT:
    """An object with the methods of `base`, whose calls go to the resource called `name` of the machine."""
    made: Any = base  # a class is hashable whatever its type hint
    handle: Any = cast("Any", proxy_of(made, _Handle))()
    handle.name = ResourceName(base.API, name)
    handle._client = client
    handle._note = note
    result: ResourceT = handle
    return result


class _Handle(Proxied):
    _client: Callable[[], ApiClient]
    _note: Note

    def __init__(self) -> None:
        """Nothing of a driver's life: it lives elsewhere."""

    def remote(self) -> tuple[ApiClient, str]:
        return self._client(), self.name.short

    def note(self, method: str, result: Any) -> None:
        self._note(self.name.short, method, result)

    def __repr__(self) -> str:
        return f"<handle of {self.name}>"
