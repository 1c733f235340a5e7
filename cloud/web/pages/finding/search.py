"""`/search`: find machines, fragments, datasets, pages and help by words; what Ctrl+K asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.domain.permissions.rules import AccessRule, signed_in
from cloud.services.common.base import Cloud
from cloud.services.machines.fleet import FleetService
from cloud.services.organizations.roles import RoleService
from cloud.web.common.site import SECTIONS, TABS, author_of, render
from cloud.web.help.library import help_library
from cloud.web.pages.finding.targets import ACTIONS, EACH, SearchTarget, machine_targets, matching, split_tab
from rpc.pages import wants_json
from schema import ErrorKind, MachineError

LONGEST: Final = 100  # characters


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /search": signed_in(
        "machines that the caller may see, pages that are the same for all; names of fragments and datasets: operators "
        "of the organization"
    ),
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the route."""
    return [Route("/search", _Search(cloud).search)]


class _Search:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def search(self, request: Request) -> Response:
        """`GET /search?text=`: targets as a page, or as a list in JSON."""
        text = " ".join(request.query_params.get("text", "").split())
        if len(text) > LONGEST:
            raise MachineError(
                f"the search has {len(text)} characters", kind=ErrorKind.INVALID, remedy=f"use at most {LONGEST}"
            )
        await RoleService(self._cloud, author_of(request)).still_signed_in()
        targets = await self._targets(request, text)
        if wants_json(request.headers):
            return Response(msgspec.json.encode(targets), media_type="application/json")
        return render(request, "search.html", text=text, targets=targets)

    async def _targets(self, request: Request, text: str) -> list[SearchTarget]:
        paths = {getattr(route, "path", "") for route in request.app.routes}
        pages = [SearchTarget("Page", name, path) for name, path in SECTIONS if path in paths]
        pages += [action for action in ACTIONS if action.href.partition("#")[0] in paths]
        if not text:
            return pages
        service = FleetService(self._cloud, author_of(request))
        targets: dict[str, SearchTarget] = {}
        for words, tab in dict.fromkeys([split_tab(text, TABS), (text, None)]):
            machines = [
                (machine.name, machine.location.path, machine.parts[0].id)
                for machine in await service.search(words, EACH)
            ]
            targets |= {target.href: target for target in machine_targets(machines, TABS, tab)}
        objects = [
            SearchTarget(each.kind.capitalize(), each.name, f"/{each.kind}s/{quote(each.id)}")
            for each in await service.named_objects(text, EACH)
        ]
        library = await self._cloud.room.run("", help_library)
        helps = [
            SearchTarget(
                "Help",
                heading.text,
                f"/help/{page.path}{'#' if heading.anchor else ''}{heading.anchor}",
                page.title if heading.anchor else "",
            )
            for page, heading in library.search(text)
        ]
        return [*targets.values(), *objects, *matching(text, pages), *helps]
