"""`/help`: the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.domain.permissions.rules import AccessRule, signed_in
from cloud.services.common.base import Cloud
from cloud.services.organizations.roles import RoleService
from cloud.web.common.site import author_of, render
from cloud.web.help.library import help_library
from schema import ErrorKind, MachineError

LONGEST_SEARCH: Final = 200  # characters


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /help": signed_in("the documentation, the same for all callers"),
    "GET /help/{folder}/{page}": signed_in("the documentation, the same for all callers"),
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the help."""
    pages = _Pages(cloud)
    return [Route("/help", pages.index), Route("/help/{folder}/{page}", pages.show)]


class _Pages:
    """Endpoints of the help. Its pages are the same for all, so they share one turn in the workroom."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def index(self, request: Request) -> Response:
        """`GET /help?text=`: all pages in their groups, or those with a text in their headings."""
        text = request.query_params.get("text", "").strip()
        if len(text) > LONGEST_SEARCH:
            raise MachineError(
                f"the search has {len(text)} characters",
                kind=ErrorKind.INVALID,
                remedy=f"use at most {LONGEST_SEARCH}",
            )
        await RoleService(self._cloud, author_of(request)).still_signed_in()
        library = await self._cloud.room.run("", help_library)
        results = library.search(text) if text else []
        return render(request, "help.html", groups=library.groups, text=text, results=results)

    async def show(self, request: Request) -> Response:
        """`GET /help/{folder}/{page}`: one page."""
        await RoleService(self._cloud, author_of(request)).still_signed_in()
        path = f"{request.path_params['folder']}/{request.path_params['page']}"
        library = await self._cloud.room.run("", help_library)
        html = await self._cloud.room.run("", lambda: library.html(path))
        group = next((group for group in library.groups if library.pages[path] in group.pages), None)
        return render(request, "help_page.html", page=library.pages[path], group=group, html=html)
