"""Finds handlers by path; the messages of a service are loaded when it is first called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import structlog

from rpc.api.table import APIS, SERVICES
from rpc.api.target import Target
from schema.names import API

if TYPE_CHECKING:
    from grpclib.const import Handler

_log = structlog.stdlib.get_logger("rpc.api")


class ApiRouter:
    """A `Router` for `rpc.call`: the APIs of resources, machine-wide services, and whatever is registered.

    `bases` gives the class that the drivers of an API derive from, `services` the class that answers a machine-wide
    service by its full name; both as a class or as `module:Class`, imported when first needed. Calls go to `target`.
    """

    def __init__(
        self, target: Target, *, bases: Mapping[API, type | str], services: Mapping[str, type | str] | None = None
    ) -> None:
        self._target = target
        self._handlers: dict[str, Handler] = {}
        self._names: set[str] = set()
        self._waiting: dict[str, tuple[API | None, type | str]] = {
            APIS[api].service: (api, base) for api, base in bases.items() if api in APIS
        }
        for service, cls in (services or {}).items():
            self._waiting[SERVICES[service].service] = (None, cls)

    def get(self, path: str, /) -> Handler | None:
        """The handler of `/package.Service/Method`; None for what is not served."""
        handler = self._handlers.get(path)
        if handler is None and self._waiting:
            service = path[1 : path.rfind("/")]
            if service in self._waiting:
                self.load(service)
                handler = self._handlers.get(path)
        return handler

    def register(self, handlers: Mapping[str, Handler]) -> None:
        """Serve more; a path that is taken is replaced."""
        self._handlers.update(handlers)
        self._names.update(path[1 : path.rfind("/")] for path in handlers)

    def service_names(self) -> list[str]:
        """Full names of what is served, loaded or not, sorted: for reflection."""
        return sorted(self._names | self._waiting.keys())

    def load(self, service: str) -> None:
        """Load a service now if it was not, so that its first call is as fast as the others.

        A service whose class cannot be imported or does not fit is logged and not served.
        """
        waiting = self._waiting.pop(service, None)
        if waiting is None:
            return
        from rpc.api.adapter import serve_api, serve_service

        api, cls = waiting
        try:
            if isinstance(cls, str):
                cls = _imported(cls)
            self.register(
                serve_service(service, cls, self._target) if api is None else serve_api(api, cls, self._target)
            )
        except Exception:
            _log.exception("a service cannot be served", service=service)


def _imported(path: str) -> type:
    module, _, name = path.partition(":")
    found: type = getattr(importlib.import_module(module), name)
    return found
