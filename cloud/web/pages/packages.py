"""Archives of the registry: `GET /packages/<id>`, with a token, or by a link that was signed for it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cloud.registry import access, files, items
from cloud.registry.files import File
from cloud.registry.items import MODULE, Item
from cloud.services.base import Cloud
from cloud.store.sql import Sql
from cloud.web.ranges import served
from cloud.web.site import author_of
from rpc.guard import identity_of
from schema.errors import ErrorKind, MachineError


def routes(cloud: Cloud) -> list[Route]:
    """The guard lets requests without a token through to here."""

    async def download(request: Request) -> Response:
        subject, author = request.path_params["id"], author_of(request)
        linked = "signature" in request.query_params
        if linked:
            cloud.links.check(request.url.path, request.query_params, cloud.clock())
        elif identity_of(request.scope) is None:
            raise MachineError(
                "this needs a key or a signed link", kind=ErrorKind.UNAUTHENTICATED, remedy="ask for a link"
            )

        def work(sql: Sql) -> tuple[Item, File]:
            found = files.file(sql, subject)
            item = items.item(sql, found.item_id)
            return (item if linked else access.readable(sql, author, item, subject)), found

        item, file = await cloud.store.read(work)
        ending = ".tar.gz" if item.type == MODULE else ""
        return served(
            request,
            lambda start: cloud.blobs.read(file.blob, start),
            file.size,
            file.digest,
            f"{item.name}-{file.version}{ending}",
            "application/gzip" if ending else "application/octet-stream",
        )

    return [Route("/packages/{id}", download)]
