"""Typed handles: each presents a resource of a local or remote machine as the base class of its API.

A call takes the same path as a client's call, in memory or over the network, so a test sees what a client sees: the
arguments are converted, errors are MachineError, and a resource that is not ready is UNAVAILABLE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from engine import Proxied, Resource, proxy_of
from rpc.api import ApiClient
from schema import ResourceName

ResourceT = TypeVar("ResourceT", bound=Resource)
Note = Callable[[str, str, Any], None]
"""Callback for every result: resource, method, value."""


def make_handle(base: type[ResourceT], name: str, client: Callable[[], ApiClient], note: Note) -> ResourceT:
    """Create an object with the methods of `base` that calls the machine's resource `name`."""
    base_class: Any = base  # a class is hashable whatever its type hint
    handle: Any = cast("Any", proxy_of(base_class, _Handle))()
    handle.name = ResourceName(base.API, name)
    handle._client = client
    handle._note = note
    result: ResourceT = handle
    return result


class _Handle(Proxied):
    _client: Callable[[], ApiClient]
    _note: Note

    def __init__(self) -> None:
        """Skip the initialization of a driver, which runs elsewhere."""

    def remote(self) -> tuple[ApiClient, str]:
        return self._client(), self.name.short

    def note(self, method: str, result: Any) -> None:
        self._note(self.name.short, method, result)

    def __repr__(self) -> str:
        return f"<handle of {self.name}>"
