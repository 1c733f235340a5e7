"""Permissions of pages, HTTP routes and WebSockets: each module with routes has their rules in `RULES`.

The role of a rule is checked before the endpoint runs. Anything further goes through the services, whose methods have
rules of their own; `note` summarizes the result.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, Final

from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from cloud.domain.permissions.access import Role
from cloud.domain.permissions.rules import ROLE_ANYWHERE, AccessRule, answering, machine, public, signed_in
from cloud.services.common.admission import admit
from cloud.services.common.base import Cloud
from cloud.web import api, pages
from cloud.web.common.closing import close_frame_of
from cloud.web.common.site import author_of, status_of
from rpc.access import identity_of
from schema import ErrorKind, MachineError

APPLICATION: Final[Mapping[str, AccessRule]] = {
    "GET /healthz": public("returns only ok"),
    "GET /static/{file}": public("scripts and styles, the same for all callers"),
    "WS /machine/v1/follow": machine("part"),
    "WS /machine/v1/serve": answering("part"),
    "GET /metrics": ROLE_ANYWHERE | "machines that the caller may view; the process: the first organization",
}
"""Rules for the routes of `cloud.web.app` itself."""


def _rules_of_modules() -> Mapping[str, AccessRule]:
    """Return the rules of all routes: those of APPLICATION, and `RULES` of each module that has routes."""
    rules = dict(APPLICATION)
    for package in (api, pages):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            own: Mapping[str, AccessRule] = getattr(import_module(module.name), "RULES", {})
            if twice := own.keys() & rules.keys():
                raise TypeError(f"{module.name}: other modules have rules for {', '.join(sorted(twice))}")
            rules.update(own)
    return rules


ROUTES: Final = _rules_of_modules()
"""Rules by method (`WS` for WebSockets) and path."""

BY_THE_GUARD: Final[Mapping[str, AccessRule]] = {
    "GET /login": public("the login form"),
    "POST /login": public("a key is the credential"),
    "GET /login/link": public("the page of a link that logs in, which contains no secrets"),
    "POST /login/link": public("the ticket of the link is the credential"),
    "POST /login/links": signed_in("makes a ticket for the caller's own API key"),
    "POST /logout": signed_in("ends the caller's own session"),
}
"""Requests that rpc.access.guard handles itself."""

_OPEN: Final = tuple(dict.fromkeys(name.split()[1] for name, rule in ROUTES.items() if rule.public))
PUBLIC: Final = tuple(path for path in _OPEN if "{" not in path)
PUBLIC_BELOW: Final = tuple(path.partition("{")[0] for path in _OPEN if "{" in path)


def names_of(route: BaseRoute) -> Iterator[str]:
    """Yield the names of a route's entries in the table, one per method."""
    if isinstance(route, WebSocketRoute):
        yield f"WS {route.path}"
    elif isinstance(route, Route):
        yield from (f"{method} {route.path}" for method in sorted((route.methods or set()) - {"HEAD"}))
    else:
        raise TypeError(f"{route!r} is neither a route nor a WebSocket: mounted applications have no rule")


def guarded_routes(cloud: Cloud, routes: Iterable[BaseRoute]) -> list[BaseRoute]:
    """Return the routes, each guarded by its rule. TypeError for a route without a rule or a rule without a route."""
    all_routes = list(routes)
    if unmatched := {name for route in all_routes for name in names_of(route)} ^ ROUTES.keys():
        raise TypeError(f"routes without a rule, or rules without a route: {', '.join(sorted(unmatched))}")
    return [_guarded(cloud, route) for route in all_routes]


def _guarded(cloud: Cloud, route: BaseRoute) -> BaseRoute:
    rules = {name.partition(" ")[0]: ROUTES[name] for name in names_of(route)}
    if isinstance(route, WebSocketRoute):
        return WebSocketRoute(route.path, _socket(cloud, rules["WS"], route.endpoint))
    assert isinstance(route, Route)
    return Route(route.path, _page(cloud, rules, route.endpoint), methods=list(rules))


def _page(cloud: Cloud, rules: Mapping[str, AccessRule], endpoint: Any) -> Any:
    @wraps(endpoint)
    async def page(request: Request) -> Response:
        await _admit(cloud, rules["GET" if request.method == "HEAD" else request.method], request)
        answer: Response = await endpoint(request)
        return answer

    return page


def _socket(cloud: Cloud, rule: AccessRule, endpoint: Any) -> Any:
    @wraps(endpoint)
    async def socket(connection: WebSocket) -> None:
        try:
            await _admit(cloud, rule, connection)
        except MachineError as error:
            if rule.role is Role.MACHINE:  # machines read the HTTP status; pages, the close code
                await connection.send_denial_response(PlainTextResponse(str(error), status_of(error)))
            else:
                await connection.accept()
                await connection.close(*close_frame_of(error))
            return
        await endpoint(connection)

    return socket


async def _admit(cloud: Cloud, rule: AccessRule, connection: HTTPConnection) -> None:
    """Raise MachineError unless the rule admits the caller."""
    if rule.public:
        return
    if identity_of(connection.scope) is None:
        raise MachineError("this needs a key", kind=ErrorKind.UNAUTHENTICATED, remedy="log in")
    if rule.of is None:
        return
    author, parameters = author_of(connection), {**connection.query_params, **connection.path_params}
    await admit(cloud, author, rule, str(parameters.get(rule.field, "")))
