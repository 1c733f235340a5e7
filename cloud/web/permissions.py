"""Permissions of pages, HTTP routes and WebSockets, as cloud.domain.permissions.call_rules has those of calls.

The role of an entry is checked before the endpoint runs. Anything further goes through the services, whose methods have
entries of their own; `note` summarizes the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, Final

from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from cloud.domain.permissions.access import ObjectKind, Role
from cloud.domain.permissions.call_rules import AT_ALERTS, FILTERED, READABLE, ROLE_ANYWHERE
from cloud.domain.permissions.rules import (
    AccessRule,
    answering,
    home_operator,
    home_owner,
    machine,
    operator,
    owner,
    public,
    signed_in,
)
from cloud.services.common.admission import admit
from cloud.services.common.base import Cloud
from cloud.web.common.closing import close_frame_of
from cloud.web.common.site import author_of, status_of
from rpc.access import identity_of
from schema import ErrorKind, MachineError

_PART: Final = operator(ObjectKind.PART, "part")
_BY_ID: Final = operator(ObjectKind.PART, "id")
_FRAGMENT: Final = operator(ObjectKind.FRAGMENT, "fragment")
_DATASET: Final = operator(ObjectKind.DATASET, "dataset")
_JOB: Final = owner(ObjectKind.JOB, "id")
_OF_FORM: Final = signed_in("owners of the place that the form names")
_IN_ORGANIZATION: Final = operator(ObjectKind.ORGANIZATION, "organization")
_OF_ORGANIZATION: Final = owner(ObjectKind.ORGANIZATION, "organization")
_OWN_JOBS: Final = signed_in("jobs that the caller started, and those of an organization that it owns")
_PART_OR_MACHINE: Final = operator(ObjectKind.PART, "id", ObjectKind.ROBOT)

ROUTES: Final[Mapping[str, AccessRule]] = {
    "GET /healthz": public("returns only ok"),
    "GET /static/{file}": public("scripts and styles, the same for all callers"),
    "GET /ca.pem": public("certificates of authorities; with a key those of the caller's organization too"),
    "GET /connectivity/{part}": public("proves that this cloud answers, the same for parts that do not exist"),
    "GET /install.sh": public("the installer, which contains no secrets"),
    "POST /machine/v1/install": public("the code is the credential; it is void after its use"),
    "GET /invites/{secret}": public("the secret in the path is the credential"),
    "POST /invites/{secret}": public("the secret in the path is the credential"),
    "GET /help": signed_in("the documentation, the same for all callers"),
    "GET /help/{folder}/{page}": signed_in("the documentation, the same for all callers"),
    "GET /search": signed_in("machines that the caller may see, and pages that are the same for all"),
    "GET /files/{id}": public("with a signed link; otherwise operators of the origin of the file"),
    "GET /releases/files/{id}": public("with a signed link"),
    "GET /packages/{id}": public("with a signed link; otherwise callers that may read the package"),
    "GET /files/{id}/thumbnail": operator(ObjectKind.FILE, "id"),
    # the machine
    "WS /machine/v1/follow": machine("part"),
    "WS /machine/v1/serve": answering("part"),
    "GET /machine/v1/parts/{part}/releases/metadata/{name}": machine("part"),
    "GET /machine/v1/parts/{part}/releases/targets/{path:path}": machine("part"),
    "GET /api/json1/config": home_owner(ObjectKind.PART, "id"),
    "GET /machine/v1/installer": machine("part"),
    "GET /metrics": ROLE_ANYWHERE | "machines that the caller may view; the process: the first organization",
    # lists
    "GET /": ROLE_ANYWHERE,
    "WS /live/machines": ROLE_ANYWHERE,
    "POST /machines": _OF_FORM,
    "GET /fleet": _OWN_JOBS,
    "POST /fleet/new": ROLE_ANYWHERE,
    "POST /fleet/preview": signed_in("machines that the caller owns in its own organization"),
    "POST /fleet/start": signed_in("machines that the caller owns in its own organization"),
    "GET /fleet/{id}": _OWN_JOBS,
    "POST /fleet/{id}/{action}": _OWN_JOBS,
    "WS /live/fleet/{id}": _OWN_JOBS,
    "POST /fleet/views": signed_in("the caller's own views; shared ones: owners of the organization"),
    "POST /fleet/views/{id}/delete": signed_in("the caller's own views; shared ones: owners of the organization"),
    "GET /locations": ROLE_ANYWHERE,
    "POST /locations/{id}/{action}": _OF_FORM,
    "GET /keys": signed_in("keys of the places that the caller owns"),
    "POST /keys": _OF_FORM,
    "POST /keys/{id}/{action}": _OF_FORM,
    "POST /members": _OF_FORM,
    "POST /members/{action}": _OF_FORM,
    "GET /audit": signed_in("entries of organizations that the caller owns"),
    "GET /audit.csv": signed_in("entries of organizations that the caller owns"),
    "GET /modules": READABLE,
    "POST /modules": _OF_FORM,
    "GET /modules/{item}": READABLE,
    "POST /modules/{item}": signed_in("owners of the module"),
    "GET /modules/{item}/download": READABLE,
    "GET /releases": ROLE_ANYWHERE,
    "POST /releases": _OF_FORM,
    "WS /live/releases": ROLE_ANYWHERE,
    "GET /releases/{organization}/{program}/{version}": operator(ObjectKind.ORGANIZATION, "organization"),
    "GET /rollouts": ROLE_ANYWHERE,
    "WS /live/rollouts": ROLE_ANYWHERE,
    "GET /rollouts/new": ROLE_ANYWHERE,
    "POST /rollouts/new": _OF_FORM,
    "GET /rollouts/versions": ROLE_ANYWHERE,
    "GET /rollouts/{organization}/{id}": _IN_ORGANIZATION,
    "POST /rollouts/{organization}/{id}": _OF_ORGANIZATION,
    "WS /live/rollouts/{organization}/{id}": _IN_ORGANIZATION,
    "GET /alerts": AT_ALERTS,
    "WS /live/alerts": AT_ALERTS,
    "GET /alerts/count": AT_ALERTS,
    "GET /alerts/rules": signed_in("rules of the caller's organization, for its operators"),
    "POST /alerts/rules": _OF_FORM,
    "GET /alerts/{alert}": operator(ObjectKind.ALERT, "alert"),
    "POST /alerts/{alert}": operator(ObjectKind.ALERT, "alert"),
    "GET /triggers": ROLE_ANYWHERE,
    "WS /live/triggers": ROLE_ANYWHERE,
    # data
    "GET /data": FILTERED,
    "GET /machines/{id}/data": signed_in("redirects to /data"),
    "GET /data/series": FILTERED,
    "GET /data/rows": FILTERED,
    "GET /data/export": FILTERED,
    "GET /sql": signed_in("operators of the organization that the form names"),
    "POST /sql/answer": signed_in("the same"),
    "GET /sql/answer.csv": signed_in("the same"),
    "POST /sql/answer.csv": signed_in("the same"),
    "GET /sql/fields": operator(ObjectKind.ORGANIZATION, "organization"),
    "POST /sql/saved": _OF_FORM | "operators of the organization that the form names",
    "POST /sql/saved/{id}/{action}": operator(ObjectKind.QUERY, "id"),
    "POST /data/change": signed_in("labels: operators; deleting: owners"),
    "POST /data/retention": _OF_FORM,
    # datasets
    "GET /datasets": ROLE_ANYWHERE,
    "POST /datasets": _OF_FORM | "operators of the organization that the form names",
    "GET /datasets/{dataset}": _DATASET,
    "POST /datasets/{dataset}/{action}": _DATASET | "deleting: owners",
    "GET /datasets/{dataset}/label": _DATASET,
    "GET /datasets/{dataset}/label/{file}": _DATASET,
    "GET /datasets/{dataset}/pictures/{file}": _DATASET,
    "POST /datasets/{dataset}/pictures/{file}": _DATASET,
    "POST /datasets/{dataset}/pictures/{file}/remove": _DATASET,
    # training
    "GET /training/new": owner(ObjectKind.DATASET, "dataset"),
    "GET /training": signed_in("jobs of organizations that the caller owns"),
    "POST /training": _OF_FORM | "owners of the dataset's organization",
    "WS /live/training": signed_in("the same"),
    "GET /training/notifications": signed_in("those of organizations that the caller owns"),
    "POST /training/notifications": _OF_FORM,
    "POST /training/notifications/remove": _OF_FORM,
    "GET /training/{id}": _JOB,
    "GET /training/{id}/report": _JOB,
    "GET /training/{id}/scores": _JOB,
    "POST /training/{id}/{action}": _JOB,
    "WS /live/training/{id}": _JOB,
    "GET /models/{organization}/{model}": _OF_ORGANIZATION,
    "POST /models/{organization}/{model}/use": _OF_ORGANIZATION | "changing a machine: its owners",
    # one machine
    "GET /machines/{id}": _PART_OR_MACHINE,
    "WS /live/machines/{id}": _PART_OR_MACHINE,
    "POST /machines/{id}/rename": owner(ObjectKind.ROBOT, "id", ObjectKind.PART),
    "POST /machines/{id}/tags": owner(ObjectKind.ROBOT, "id"),
    "POST /machines/{id}/restart": _BY_ID,
    "POST /machines/{id}/agent/update": _BY_ID,
    "POST /machines/{id}/agent/check": _BY_ID,
    "POST /machines/{id}/setup": home_owner(ObjectKind.PART, "id", ObjectKind.ROBOT),
    "GET /machines/{id}/install": _PART_OR_MACHINE,
    "WS /live/machines/{id}/install": _PART_OR_MACHINE,
    "POST /machines/{id}/install": home_owner(ObjectKind.PART, "id", ObjectKind.ROBOT),
    "POST /machines/{id}/delete": home_owner(ObjectKind.PART, "id", ObjectKind.ROBOT),
    "POST /machines/{id}/parts": home_owner(ObjectKind.ROBOT, "id", ObjectKind.PART),
    "POST /machines/{id}/control/cards": home_operator(ObjectKind.PART, "id"),
    "GET /logs": FILTERED,
    "GET /machines/{id}/logs": _BY_ID,
    "GET /machines/{id}/logs/rates": _BY_ID,
    "GET /machines/{id}/control": _BY_ID,
    "GET /machines/{id}/statistics": _BY_ID,
    "GET /machines/{id}/statistics/series": _BY_ID,
    "GET /machines/{id}/snapshots": _BY_ID | "datasets: operators of the organization",
    "POST /machines/{id}/snapshots": machine("id"),
    "GET /machines/{id}/connect": _PART_OR_MACHINE,
    "POST /machines/{id}/connect": owner(ObjectKind.PART, "id", ObjectKind.ROBOT),
    "POST /machines/{id}/stop-all": _PART_OR_MACHINE,
    "WS /live/logs/{id}": _BY_ID,
    "GET /machines/{part}/config": _PART,
    "POST /machines/{part}/config": _PART | "saving: owners",
    "POST /machines/{part}/config/check": _PART,
    "POST /machines/{part}/config/complete": _PART,
    "WS /machines/{part}/config/live": _PART,
    "GET /machines/{part}/history": _PART,
    "POST /machines/{part}/history": owner(ObjectKind.PART, "part"),
    # fragments
    "GET /configuration/schema": ROLE_ANYWHERE,
    "GET /fragments": ROLE_ANYWHERE,
    "POST /fragments": _OF_FORM,
    "GET /fragments/{fragment}": _FRAGMENT,
    "POST /fragments/{fragment}": _FRAGMENT | "changes: owners",
    "POST /fragments/{fragment}/check": _FRAGMENT,
    "POST /fragments/{fragment}/complete": _FRAGMENT,
    "GET /fragments/{fragment}/history": _FRAGMENT,
    "POST /fragments/{fragment}/history": owner(ObjectKind.FRAGMENT, "fragment"),
    # triggers
    "GET /machines/{part}/triggers": _PART,
    "POST /machines/{part}/triggers": _PART | "testing a reading; sending: owners",
    "WS /live/triggers/{part}": _PART,
    "GET /machines/{part}/triggers/deliveries/{id}": _PART,
    "POST /machines/{part}/triggers/deliveries/{id}": owner(ObjectKind.PART, "part"),
    "WS /live/triggers/{part}/{id}": _PART,
    # releases
    "POST /api/v1/release-files/{organization}/{sha256}": _OF_ORGANIZATION,
}

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
        raise MachineError("this needs a key", kind=ErrorKind.UNAUTHENTICATED, remedy="sign in")
    if rule.of is None:
        return
    author, parameters = author_of(connection), {**connection.query_params, **connection.path_params}
    await admit(cloud, author, rule, str(parameters.get(rule.field, "")))
