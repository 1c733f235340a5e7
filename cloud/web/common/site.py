"""Foundation of the cloud's pages: templates, forms, error pages, and the caller.

A module of `cloud.web.pages` has `routes(cloud)`. Its endpoints call the same services as RPCs, so that the same roles
apply:

    async def index(request: Request) -> Response:
        keys = await AppService(cloud, author_of(request)).list_keys(request.query_params.get("org", ""))
        return render(request, "keys.html", keys=keys)

Templates extend base.html (blocks `title`, `main`, `scripts`, `head`) and are in `templates/`; scripts and styles are
in `static/`. A MachineError of an endpoint becomes an error page. Forms are sent by POST; the guard of the port has
verified that they come from this site.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, quote

from jinja2 import Environment
from starlette.datastructures import FormData
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from cloud.documents.pieces import SMALL
from cloud.domain.permissions import authentication
from cloud.values.author import Author
from cloud.values.limits import FORM, Limit
from cloud.work.workroom import Workroom
from rpc.access import identity_of
from rpc.pages import STATUS, TITLES, Assets, template_compilers, template_environment, wants_json, wants_page
from schema import ErrorKind, MachineError
from support import Worker

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]

RESOURCE_STATES: Final = ("ready", "configuring", "unhealthy", "removing", "unconfigured")
SECTIONS: Final = (
    ("Machines", "/"),
    ("Alerts", "/alerts"),
    ("Triggers", "/triggers"),
    ("Fragments", "/fragments"),
    ("Rollouts", "/rollouts"),
    ("Releases", "/releases"),
    ("Modules", "/modules"),
    ("Data", "/data"),
    ("SQL", "/sql"),
    ("Datasets", "/datasets"),
    ("Training", "/training"),
    ("Keys", "/keys"),
    ("Audit", "/audit"),
    ("Help", "/help"),
)
"""The navigation; entries without a page are left out."""

TABS: Final = (
    ("Overview", "/machines/{id}"),
    ("Control", "/machines/{id}/control"),
    ("Statistics", "/machines/{id}/statistics"),
    ("Configuration", "/machines/{id}/config"),
    ("History", "/machines/{id}/history"),
    ("Logs", "/machines/{id}/logs"),
    ("Data", "/data?part={id}"),
    ("Triggers", "/machines/{id}/triggers"),
    ("Connect", "/machines/{id}/connect"),
)
"""The pages of a part; missing ones are left out."""

HELP: Final = (
    ("/fleet", "howto/work-on-many-machines"),
    ("/alerts", "howto/alerts"),
    ("/machines/new", "howto/install-machine-agent"),
    ("/machines/{id}/config", "howto/edit-a-configuration"),
    ("/machines/{id}/history", "howto/edit-a-configuration"),
    ("/machines/{id}/control", "howto/control-a-machine"),
    ("/machines/{id}/connect", "howto/control-a-machine"),
    ("/machines/{id}/statistics", "howto/diagnose-a-machine"),
    ("/machines/{id}/logs", "howto/read-the-logs"),
    ("/logs", "howto/read-the-logs"),
    ("/machines/{id}/triggers", "howto/triggers"),
    ("/machines/{id}", "howto/operate-a-machine"),
    ("/triggers", "howto/triggers"),
    ("/fragments", "howto/share-configuration"),
    ("/rollouts", "howto/roll-out-a-version"),
    ("/releases", "howto/release-a-version"),
    ("/modules", "howto/publish-a-module"),
    ("/data", "howto/cloud-data"),
    ("/sql", "howto/cloud-data"),
    ("/datasets", "howto/train-a-model"),
    ("/training", "howto/train-a-model"),
    ("/models", "howto/train-a-model"),
    ("/keys", "howto/let-others-in"),
    ("/members", "howto/let-others-in"),
    ("/locations", "howto/let-others-in"),
    ("/", "howto/cloud-pages"),
)
"""The help of a page: the first entry whose segments its path begins with."""

_HERE: Final = Path(__file__).parents[1]  # folder of templates and static files
_PARAMETER: Final = re.compile(r"\{[^{}]*+\}")


@cache
def assets() -> Assets:
    """Return the static files."""
    return Assets(_HERE / "static")


@cache
def _templates() -> Environment:
    jinja = template_environment([_HERE / "templates"], assets())
    jinja.globals.update(known_states=RESOURCE_STATES)
    return jinja


async def compile_pages() -> None:
    """Compile the templates in a thread, so that the first request for a page does not hold up the event loop."""
    worker = Worker("templates")
    async with worker.opened():
        for compiled in template_compilers(_templates()):
            await worker.run(compiled)


def render(request: Request, template: str, code: int = 200, **values: Any) -> Response:
    """Render a page. `live` is the path of its WebSocket, `error` the error of its form."""
    paths = {_PARAMETER.sub("{id}", getattr(route, "path", "")) for route in request.app.routes}

    def tabs(subject: str) -> list[tuple[str, str]]:
        """Return names and paths of the pages of part `subject`."""
        return [(name, path.format(id=subject)) for name, path in TABS if path.partition("?")[0] in paths]

    context = {
        "live": "",
        "error": "",
        "now": datetime.now(UTC),
        "sections": [(name, path) for name, path in SECTIONS if path in paths],
        "current_section": _section(request.url.path),
        "path": request.url.path,
        "help": help_of(request.url.path),
        "tabs": tabs,
        "signed_in": identity_of(request.scope) is not None,
        "stoppable": "" if template == "error.html" else _machine_of(request),
        **values,
    }
    return Response(_templates().get_template(template).render(context), code, media_type="text/html")


def render_macro(template: str, macro: str, *arguments: object) -> str:
    """Render a macro of a template for a live connection; its root element has an id."""
    module = _templates().get_template(template).make_module({"now": datetime.now(UTC)})
    return str(getattr(module, macro)(*arguments))


def _machine_of(request: Request) -> str:
    """Return the id of the machine or part whose page is requested; "" for other pages."""
    if request.url.path == "/data":
        return request.query_params.get("part", "")
    parameters = request.path_params
    of_machine = request.url.path.startswith("/machines/")
    return str(parameters.get("part") or parameters.get("id") or "") if of_machine else ""


def help_of(path: str) -> str:
    """Return the address of the help of a page; that of all pages for a page of the help itself."""
    segments = path.strip("/").split("/")
    if segments[0] in {"help", "search"}:
        return "/help"
    for pattern, page in HELP:
        parts = pattern.strip("/").split("/") if pattern != "/" else []
        if len(parts) <= len(segments) and all(
            part in {"{id}", segment} for part, segment in zip(parts, segments, strict=False)
        ):
            return f"/help/{page}"
    return "/help"


def _section(path: str) -> str:
    first = "/" + path.strip("/").partition("/")[0]
    return {"/machines": "/", "/fleet": "/", "/models": "/training"}.get(first, first)


def author_of(connection: HTTPConnection) -> Author:
    """Return the caller as authenticated by the guard."""
    return authentication.author_of(identity_of(connection.scope))


async def fields(request: Request, limit: Limit = FORM) -> FormData:
    """Read a form sent by POST as `application/x-www-form-urlencoded`. INVALID if it is larger than `limit`."""
    body = await body_of(request, limit)
    pairs = await offload(
        request, len(body), lambda: parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
    )
    return FormData([(name, value) for name, value in pairs])


async def body_of(request: Request, limit: Limit) -> bytes:
    """Read the body of a request. INVALID as soon as it is larger than `limit`."""
    body = bytearray()
    async with aclosing(request.stream()) as chunks:
        async for chunk in chunks:
            body += chunk
            check_size(len(body), limit)
    return bytes(body)


async def offload(request: Request, size: int, function: Callable[[], T]) -> T:
    """Run `function` on `size` bytes of a request and return its result; large input goes to the workroom."""
    if size <= SMALL:
        return function()
    room: Workroom = request.app.state.room
    return await room.run(author_of(request).name, function)


def check_size(size: int, limit: Limit) -> None:
    """Raise an error (INVALID) if `size` bytes, the part of a form received so far, exceed `limit`."""
    if size > limit.value:
        raise MachineError(
            f"the form is larger than {limit.value >> 20} MiB, the limit `{limit.name}`",
            kind=limit.kind,
            remedy=limit.remedy,
        )


def text_of(form: FormData, name: str, otherwise: str = "") -> str:
    """Return a field of a form without surrounding white space."""
    value = form.get(name, otherwise)
    return value.strip() if isinstance(value, str) else otherwise


def redirect(path: str) -> Response:
    """Redirect to a page after a form was processed, so that reloading does not submit it again."""
    return RedirectResponse(path, 303)


def status_of(error: MachineError) -> int:
    """Return the HTTP status of an error."""
    return STATUS.get(error.kind, 500)


# ---- errors


def refusal(request: Request, error: MachineError, code: int = 0) -> Response:
    """Return an error response: a page for browsers, JSON for programs and below /api/."""
    code = code or status_of(error)
    api = request.url.path.startswith("/api/")
    if wants_page(request.headers) and not wants_json(request.headers) and not api:
        return render(request, "error.html", code, title=TITLES.get(code, "Request failed"), message=str(error))
    return JSONResponse({"error": str(error)}, status_code=code)


async def machine_error(request: Request, error: Exception) -> Response:
    """Handle a MachineError of an endpoint; a GET with an invalid session is redirected to the login page."""
    assert isinstance(error, MachineError)
    session_ended = error.kind is ErrorKind.UNAUTHENTICATED and identity_of(request.scope) is not None
    if session_ended and request.method == "GET" and wants_page(request.headers):
        current_url = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return redirect(f"/login?next={quote(current_url, safe='/')}")
    return refusal(request, error)


async def not_found(request: Request, _: Exception) -> Response:
    """Handle a missing page."""
    path = request.url.path[:200]
    return refusal(request, MachineError(f"there is no page {path}", kind=ErrorKind.NOT_FOUND))


async def wrong_method(request: Request, _: Exception) -> Response:
    """Handle a method that a page does not support."""
    path = request.url.path[:200]
    return refusal(request, MachineError(f"{path} does not support {request.method}", kind=ErrorKind.INVALID), 405)


async def failed(request: Request, _: Exception) -> Response:
    """Handle an unexpected exception, which is in the log."""
    error = MachineError("the page failed", kind=ErrorKind.INTERNAL, remedy="see the log of machine-cloud")
    return refusal(request, error, 500)


# ---- static files


async def static(request: Request) -> Response:
    """`GET /static/<file>?v=<digest>`."""
    response = await assets().respond(request, request.path_params["file"])
    return response if response is not None else await not_found(request, KeyError())
