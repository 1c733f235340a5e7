"""`/sql`: questions about captured data in SQL, with answers as a table, plot or CSV, and saved queries.

The address of a page has the query, or the id of a saved one.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from cloud.domain.organizations.saved_queries import SavedQuery
from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import AccessRule, operator, signed_in
from cloud.domain.queries.bson import decode
from cloud.domain.queries.query import EXAMPLES, QueryAnswer
from cloud.domain.queries.statement import COLUMNS
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.data.data import DataService
from cloud.values.limits import SQL_FORM
from cloud.web.common.site import author_of, body_of, fields, render, status_of
from cloud.web.pages.sql import saved
from cloud.web.pages.sql.answers import StreamedAnswer, as_json, error_of
from schema import ErrorKind, MachineError
from support.text import harmless_cell

SHOWN: Final = 500  # rows of the page; a file has all
EMBEDDED: Final = 256 * 1024  # bytes of rows that the page has for its script, which asks for larger answers itself
LONGEST: Final = 300  # characters of a value on the page
TYPES: Final = {
    **dict.fromkeys(COLUMNS, "VARCHAR"),
    "time_requested": "TIMESTAMP",
    "time_received": "TIMESTAMP",
    "tags": "VARCHAR[]",
    "additional_parameters": "JSON",
    "data": "STRUCT",
}
"""Types of the columns of the table."""


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /sql": signed_in("operators of the organization that the form names"),
    "POST /sql/answer": signed_in("the same"),
    "GET /sql/answer.csv": signed_in("the same"),
    "POST /sql/answer.csv": signed_in("the same"),
    "GET /sql/fields": operator(ObjectKind.ORGANIZATION, "organization"),
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the page and its file."""
    pages = SqlPages(cloud)
    return [
        Route("/sql", pages.index, methods=["GET"]),
        Route("/sql/answer", pages.answer, methods=["POST"]),
        Route("/sql/answer.csv", pages.file, methods=["GET", "POST"]),
        Route("/sql/fields", pages.fields, methods=["GET"]),
        *saved.routes(cloud),
    ]


class Asked(msgspec.Struct, frozen=True):
    """A request for the answer to a query."""

    organization: str
    query: str


class SqlPages:
    """Endpoints."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def index(self, request: Request) -> Response:
        """`GET /sql?organization=&query=` or `GET /sql?saved=`: the form, saved queries, and the answer to a query."""
        organizations = await AppService(self._cloud, author_of(request)).list_organizations()
        service, error = DataService(self._cloud, author_of(request)), None
        chosen = request.query_params.get("organization") or (organizations[0].id if organizations else "")
        query = request.query_params.get("query", "").replace("\r\n", "\n")
        answered, embedded = bool(query.strip()), ""
        opened: SavedQuery | None = None
        try:
            if subject := request.query_params.get("saved"):
                opened = await service.get_sql_query(subject)
                chosen, query = opened.organization_id, query or opened.text
            queries = await service.list_sql_queries(chosen) if chosen else []
        except MachineError as refused:
            error, queries = refused, []
        header: list[str] = []
        lines: list[list[str]] = []
        count = 0
        if answered and error is None:
            try:
                answer = await service.tabular_answer(chosen, query)
            except MachineError as refused:
                error, embedded = refused, json.dumps(error_of(refused))
            else:
                count = len(answer.rows)
                size = sum(map(len, answer.rows[:SHOWN]))
                header, lines, embedded = await service.offload(size, partial(_shown, answer))
        return render(
            request,
            "sql.html",
            status_of(error) if error else 200,
            organizations=[(organization.id, organization.name) for organization in organizations],
            organization=chosen,
            query=query,
            columns=COLUMNS,
            examples=[(name, "/sql?" + urlencode({"organization": chosen, "query": text})) for name, text in EXAMPLES],
            file="/sql/answer.csv?" + urlencode({"organization": chosen, "query": query}),
            header=header,
            lines=lines,
            count=count,
            answered=answered and error is None,
            error=error,
            saved=queries,
            opened=opened,
            props=json.dumps(
                {
                    "organization": chosen,
                    "organizations": json.dumps([[each.id, each.name] for each in organizations]),
                    "query": query,
                    "saved": json.dumps(saved.listed(queries)),
                    "opened": opened.id if opened is not None else "",
                    "answer": embedded,
                    "run": answered and not embedded and error is None,
                    "examples": json.dumps(EXAMPLES),
                    "columns": json.dumps(COLUMNS),
                }
            ),
        )

    async def answer(self, request: Request) -> Response:
        """`POST /sql/answer`, JSON with `organization` and `query`: see `answers`."""
        asked = await self._asked(request)
        return StreamedAnswer(DataService(self._cloud, author_of(request)), asked.organization, asked.query)

    async def _asked(self, request: Request) -> Asked:
        try:
            return msgspec.json.decode(await body_of(request, SQL_FORM), type=Asked)
        except msgspec.DecodeError as error:
            raise MachineError(f"the request is not valid: {error}", kind=ErrorKind.INVALID) from None

    async def fields(self, request: Request) -> Response:
        """`GET /sql/fields?organization=`: names and types of fields of readings, and of the other columns."""
        organization = request.query_params.get("organization", "")
        names = await DataService(self._cloud, author_of(request)).tabular_fields(organization)
        return JSONResponse({"columns": TYPES, "fields": dict(names)})

    async def file(self, request: Request) -> Response:
        """`/sql/answer.csv`, parameters or form with `organization` and `query`: all rows of an answer."""
        posted = request.method == "POST"
        parameters = await fields(request, SQL_FORM) if posted else request.query_params
        service = DataService(self._cloud, author_of(request))
        organization = str(parameters.get("organization", ""))
        answer = await service.tabular_answer(organization, saved.query_of(parameters))
        content = await service.offload(sum(map(len, answer.rows)), partial(_as_csv, answer))
        name = 'attachment; filename="answer.csv"'
        return Response(content, media_type="text/csv", headers={"content-disposition": name})


def _shown(answer: QueryAnswer) -> tuple[list[str], list[list[str]], str]:
    """Return header and lines of a table, and the answer for the script, unless it is too large for the page."""
    lines = [[_short(_text(value)) for value in decode(row).values()] for row in answer.rows[:SHOWN]]
    small = sum(map(len, answer.rows)) <= EMBEDDED
    return [name for name, _ in answer.columns], lines, as_json(answer).decode() if small else ""


def _as_csv(answer: QueryAnswer) -> bytes:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(harmless_cell(name) for name, _ in answer.columns)
    for row in answer.rows:
        values = decode(row).values()
        writer.writerow(harmless_cell(_text(value)) if isinstance(value, str) else _text(value) for value in values)
    return buffer.getvalue().encode()


def _text(value: Any) -> str:
    """Return a value as text, as a person reads it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=_text)
    return str(value)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"
