"""Router of the published APIs, which loads the messages of a service on its first call."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import structlog

from rpc.api.server.target import CallTarget
from rpc.api.table import APIS, SERVICES
from schema import API

if TYPE_CHECKING:
    from grpclib.const import Handler

_log = structlog.stdlib.get_logger("rpc.api")


class ApiRouter:
    """`Router` for `rpc.call` with resource APIs, machine-wide services and registered handlers.

    `bases` maps APIs to the base classes of their drivers, `services` maps full names of machine-wide services to their
    classes. A class may be given as `module:Class`, which is imported on first use. Calls are passed to `target`.
    """

    def __init__(
        self, target: CallTarget, *, bases: Mapping[API, type | str], services: Mapping[str, type | str] | None = None
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
        """Return the handler of `/package.Service/Method`, None if it is not served."""
        handler = self._handlers.get(path)
        if handler is None and self._waiting:
            service = path[1 : path.rfind("/")]
            if service in self._waiting:
                self.load(service)
                handler = self._handlers.get(path)
        return handler

    def register(self, handlers: Mapping[str, Handler]) -> None:
        """Add handlers; a handler for an existing path replaces it."""
        self._handlers.update(handlers)
        self._names.update(path[1 : path.rfind("/")] for path in handlers)

    def service_names(self) -> list[str]:
        """Return the sorted full names of all services, loaded or not, for reflection."""
        return sorted(self._names | self._waiting.keys())

    def load(self, service: str) -> None:
        """Load a service if it is not loaded, so that its first call is as fast as later calls.

        A service whose class cannot be imported or does not fit is logged and not served.
        """
        waiting = self._waiting.pop(service, None)
        if waiting is None:
            return
        from rpc.api.server.adapter import serve_api, serve_service

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
    cls: type = getattr(importlib.import_module(module), name)
    return cls
