"""`/sql`: questions about captured data in SQL, with answers as a table or CSV. The address of a page has the query."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.domain.queries.bson import decode
from cloud.domain.queries.query import EXAMPLES
from cloud.domain.queries.statement import COLUMNS
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.data.data import DataService
from cloud.web.common.site import author_of, render, status_of
from schema.errors import MachineError
from schema.spreadsheet import harmless

SHOWN: Final = 500  # rows of the page; a file has all
LONGEST: Final = 300  # characters of a value on the page


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the page and its file."""
    pages = Pages(cloud)
    return [Route("/sql", pages.index, methods=["GET"]), Route("/sql/answer.csv", pages.file, methods=["GET"])]


class Pages:
    """Endpoints."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def index(self, request: Request) -> Response:
        """`GET /sql?organization=&query=`: the form, and the answer to a query."""
        organizations = await AppService(self._cloud, author_of(request)).list_organizations()
        chosen = request.query_params.get("organization") or (organizations[0].id if organizations else "")
        query, error = request.query_params.get("query", "").replace("\r\n", "\n"), None
        header: list[str] = []
        lines: list[list[str]] = []
        count = 0
        if query.strip():
            try:
                header, lines, count = await self._shown(request, chosen, query)
            except MachineError as refused:
                error = refused
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
            answered=bool(query.strip()) and error is None,
            error=error,
        )

    async def file(self, request: Request) -> Response:
        """`GET /sql/answer.csv?organization=&query=`: all rows of an answer."""
        parameters = request.query_params
        service = DataService(self._cloud, author_of(request))
        rows = await service.tabular_data_by_sql(parameters.get("organization", ""), parameters.get("query", ""))
        content = await service.offload(sum(map(len, rows)), partial(_as_csv, rows))
        name = 'attachment; filename="answer.csv"'
        return Response(content, media_type="text/csv", headers={"content-disposition": name})

    async def _shown(self, request: Request, organization: str, query: str) -> tuple[list[str], list[list[str]], int]:
        service = DataService(self._cloud, author_of(request))
        rows = await service.tabular_data_by_sql(organization, query)

        def parsed() -> tuple[list[str], list[list[str]]]:
            documents = [decode(row) for row in rows[:SHOWN]]
            header = list(documents[0]) if documents else []
            return header, [[_short(_text(value)) for value in document.values()] for document in documents]

        header, lines = await service.offload(sum(map(len, rows[:SHOWN])), parsed)
        return header, lines, len(rows)


def _as_csv(rows: list[bytes]) -> bytes:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    for number, row in enumerate(rows):
        document = decode(row)
        if not number:
            writer.writerow(map(harmless, document))
        writer.writerow(
            harmless(_text(value)) if isinstance(value, str) else _text(value) for value in document.values()
        )
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
