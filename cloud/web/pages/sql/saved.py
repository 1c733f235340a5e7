"""Forms of saved queries on the page `/sql`: saving, changing, renaming and deleting."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from cloud.domain.organizations.saved_queries import SavedQuery
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import OF_FORM, AccessRule, operator
from cloud.services.common.base import Cloud
from cloud.services.data.data import DataService
from cloud.values.limits import SQL_FORM
from cloud.web.common.site import author_of, fields, redirect, text_of
from rpc.pages import wants_json
from schema import ErrorKind, MachineError

Action = Callable[[DataService, SavedQuery, FormData], Awaitable[str]]


RULES: Final[Mapping[str, AccessRule]] = {
    "POST /sql/saved": OF_FORM | "operators of the organization that the form names",
    "POST /sql/saved/{id}/{action}": operator(ObjectKind.QUERY, "id"),
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the forms."""
    forms = SavedForms(cloud)
    return [
        Route("/sql/saved", forms.create, methods=["POST"]),
        Route("/sql/saved/{id}/{action}", forms.act, methods=["POST"]),
    ]


def query_of(form: Mapping[str, Any]) -> str:
    """Return the query of a form as it was written: browsers send lines with CR LF."""
    query = form.get("query", "")
    return query.replace("\r\n", "\n") if isinstance(query, str) else ""


def listed(queries: list[SavedQuery]) -> list[dict[str, Any]]:
    """Return queries for the script of the page."""
    return [{"id": query.id, "name": query.name, "text": query.text} for query in queries]


class SavedForms:
    """Endpoints. A program gets the queries of the organization as JSON, a browser is redirected to the page."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._actions: Mapping[str, Action] = {"change": _change, "delete": _delete}

    async def create(self, request: Request) -> Response:
        """`POST /sql/saved`, fields `organization`, `name` and `query`."""
        form = await fields(request, SQL_FORM)
        service = DataService(self._cloud, author_of(request))
        organization = text_of(form, "organization")
        subject = await service.create_sql_query(organization, text_of(form, "name"), query_of(form))
        return await self._reply(request, organization, subject)

    async def act(self, request: Request) -> Response:
        """`POST /sql/saved/<id>/change`, fields `name` and `query`, empty ones stay; `POST /sql/saved/<id>/delete`."""
        action = self._actions.get(request.path_params["action"])
        if action is None:
            raise MachineError("there is no such action", kind=ErrorKind.NOT_FOUND)
        form = await fields(request, SQL_FORM)
        service = DataService(self._cloud, author_of(request))
        query = await service.get_sql_query(request.path_params["id"])
        return await self._reply(request, query.organization_id, await action(service, query, form))

    async def _reply(self, request: Request, organization: str, subject: str) -> Response:
        if wants_json(request.headers):
            queries = await DataService(self._cloud, author_of(request)).list_sql_queries(organization)
            return JSONResponse({"id": subject, "saved": listed(queries)})
        return redirect("/sql?" + urlencode({"saved": subject} if subject else {"organization": organization}))


async def _change(service: DataService, query: SavedQuery, form: FormData) -> str:
    await service.update_sql_query(query.id, text_of(form, "name"), query_of(form))
    return query.id


async def _delete(service: DataService, query: SavedQuery, form: FormData) -> str:
    await service.delete_saved_query(query.id)
    return ""
