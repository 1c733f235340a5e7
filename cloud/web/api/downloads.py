"""Downloads of captured data over HTTP: files with `Range`, and readings as CSV or Parquet."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cloud.documents.pieces import LARGE
from cloud.domain.data.exports import as_csv, as_parquet
from cloud.domain.data.files import FileRecord
from cloud.domain.data.media import PICTURES
from cloud.domain.data.readings import ReadingRecord
from cloud.services.common.base import Cloud
from cloud.services.data.data import DataService
from cloud.services.data.data_binary import linked_file
from cloud.services.data.data_words import filter_of
from cloud.web.api.ranges import served
from cloud.web.common.site import author_of
from cloud.web.views.data_view import DataQuery
from rpc.access import identity_of
from schema import ErrorKind, MachineError

FORMATS: Final = {
    "csv": (as_csv, "text/csv; charset=utf-8"),
    "parquet": (as_parquet, "application/vnd.apache.parquet"),
}
_ODD: Final = re.compile(r"[^A-Za-z0-9._-]+")
SANDBOX: Final = "default-src 'none'; sandbox"
"""Content security policy that keeps scripts in uploaded content from running."""


class Downloads:
    """Endpoints of downloads."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def file(self, request: Request) -> Response:
        """`GET /files/<id>`, with a token or through a signed link."""
        subject = request.path_params["id"]
        if "signature" in request.query_params:
            self._cloud.links.check(request.url.path, request.query_params, self._cloud.clock())
            file = await linked_file(self._cloud, subject)
        elif identity_of(request.scope) is None:
            raise MachineError(
                "this needs a key or a signed link", kind=ErrorKind.UNAUTHENTICATED, remedy="ask for a link"
            )
        else:
            file = await DataService(self._cloud, author_of(request)).file(subject)
        blobs, blob = self._cloud.blobs, file.blob
        answer = served(
            request, lambda start: blobs.read(blob, start), file.size, file.digest, file_name(file), file.mime
        )
        answer.headers["content-security-policy"] = SANDBOX
        if file.mime in PICTURES:
            answer.headers["content-disposition"] = f'inline; filename="{file_name(file)}"'
        return answer

    async def export(self, request: Request) -> Response:
        """`GET /data/export?format=csv|parquet` and the filter fields of the page."""
        format_ = request.query_params.get("format", "csv")
        if format_ not in FORMATS:
            raise MachineError(
                f"there is no format {format_[:40]!r}", kind=ErrorKind.INVALID, remedy=f"use {' or '.join(FORMATS)}"
            )
        make, media_type = FORMATS[format_]
        service = DataService(self._cloud, author_of(request))
        data_filter = filter_of(DataQuery.of(request.query_params).filter())

        async def pages(after: tuple[int, int] | None) -> list[ReadingRecord]:
            return await service.page_of_readings(data_filter, after)

        async def offload(function: Callable[[], Any]) -> Any:
            return await service.offload(LARGE, function)

        return GeneratedFile(make(pages, offload), media_type, f"readings.{format_}")


class GeneratedFile(Response):
    """A file that is generated while it is sent. An error before the first piece becomes an error response."""

    def __init__(self, pieces: AsyncGenerator[bytes, None], media_type: str, name: str) -> None:
        super().__init__(media_type=media_type, headers={"content-disposition": f'attachment; filename="{name}"'})
        del self.headers["content-length"]
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response; see ASGI 3."""
        async with aclosing(self._pieces) as pieces:
            first = await anext(pieces, b"")
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": first, "more_body": True})
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def file_name(file: FileRecord) -> str:
    """Return a safe name for a downloaded file: at most 120 letters, digits, dots, hyphens and underscores."""
    stem = file.name.rpartition("/")[2] or f"{file.source.component or 'file'}-{file.requested:%Y%m%dT%H%M%S}"
    stem = stem.removesuffix(file.extension)
    return f"{_ODD.sub('-', stem).strip('-.') or 'file'}{_ODD.sub('', file.extension)}"[-120:]
