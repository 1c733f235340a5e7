"""HTTP and JSON API of revisions for the command line, with their numbers and the names of their authors.

    GET  /api/v1/parts/PART/revisions?before=7&limit=20           newest first, below 7
    GET  /api/v1/fragments/FRAGMENT/revisions?before=7&limit=20

Owners get complete documents; for others, secrets are masked as on the pages. Requests are authenticated as everywhere
on this port: `authorization: Bearer TOKEN`. Errors are `{"error": ...}`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from cloud.services.common.base import Cloud
from cloud.services.configurations.editing import Editor, Save
from cloud.web.common.site import author_of, status_of
from cloud.web.views.editor import number_in
from schema.errors import MachineError

MAX_PAGE: Final = 100  # revisions in one reply, each with its complete document

Ask = Callable[[Editor, str, int | None, int], Awaitable[list[Save]]]


def routes(cloud: Cloud) -> list[Route]:
    """Return the routes of this API."""
    return [
        Route("/api/v1/parts/{subject}/revisions", _revisions(cloud, Editor.revisions)),
        Route("/api/v1/fragments/{subject}/revisions", _revisions(cloud, Editor.fragment_revisions)),
    ]


def _revisions(cloud: Cloud, ask: Ask) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        query = request.query_params
        try:
            before = number_in(query, "before") if query.get("before") else None
            limit = number_in(query, "limit") if query.get("limit") else MAX_PAGE
            subject = request.path_params["subject"]
            editor = Editor(cloud, author_of(request))
            saves = await ask(editor, subject, before, max(1, min(limit, MAX_PAGE)))
            size = sum(len(save.revision.text) for save in saves)
            return await editor.offload(size, lambda: JSONResponse({"revisions": _entries(saves)}))
        except MachineError as error:
            return JSONResponse({"error": str(error)}, status_of(error))

    return answer


def _entries(saves: Sequence[Save]) -> list[dict[str, Any]]:
    return [
        {
            "revision": save.revision.number,
            "saved": save.revision.saved.isoformat(),
            "author": save.who,
            "author_type": save.revision.author.type,
            "author_id": save.revision.author.name,
            "document": save.shown,
        }
        for save in saves
    ]
