"""`/models/<organization>/<name>`: versions of a model side by side, and using one on a machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from cloud.domain.permissions.access import ObjectKind, Role
from cloud.domain.permissions.rules import AccessRule, owner
from cloud.services.common.base import Cloud
from cloud.services.machines.fleet import FleetService
from cloud.services.training.training_pages import TrainingPageService
from cloud.web.common.site import author_of, fields, render, text_of
from cloud.web.views import training_view as views
from schema import ErrorKind, MachineError

MACHINES: Final = 500  # parts to choose from


_OWNERS: Final = owner(ObjectKind.ORGANIZATION, "organization")

RULES: Final[Mapping[str, AccessRule]] = {
    "GET /models/{organization}/{model}": _OWNERS,
    "POST /models/{organization}/{model}/use": _OWNERS | "changing a machine: its owners",
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of a model."""
    pages = ModelPages(cloud)
    path = "/models/{organization}/{model}"
    return [
        Route(path, pages.versions, methods=["GET"]),
        Route(f"{path}/use", pages.use, methods=["POST"]),
    ]


class ModelPages:
    """Endpoints of models."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def versions(self, request: Request) -> Response:
        """`GET /models/<organization>/<name>`."""
        author, parameters = author_of(request), request.path_params
        organization, model = parameters["organization"], parameters["model"]
        versions = await TrainingPageService(self._cloud, author).versions(organization, model)
        if not versions:
            raise MachineError(f"no job has made the model {model[:100]!r}", kind=ErrorKind.NOT_FOUND)
        machines = [entry for entry in await FleetService(self._cloud, author).machines() if entry.role is Role.OWNER]
        parts = [
            (part.id, machine.name if part is machine.parts[0] else f"{machine.name} / {part.name}")
            for machine in machines
            for part in machine.parts
        ]
        labels = list(dict.fromkeys(label for _, report in versions if report for label in report.labels))
        return render(
            request,
            "model.html",
            organization=organization,
            model=model,
            versions=[(job, report, views.headline(report)) for job, report in versions],
            labels=labels[: views.MAX_LABELS],
            detects=any(report is not None and report.detects for _, report in versions),
            classifies=not all(report is not None and report.detects for _, report in versions),
            parts=parts[:MACHINES],
        )

    async def use(self, request: Request) -> Response:
        """`POST .../use`, fields `part`, `package`, `version`: pass them on to the configuration page."""
        part = text_of(await fields(request), "part")
        if not part:
            raise MachineError("no machine was chosen", kind=ErrorKind.INVALID, remedy="choose one")
        return RedirectResponse(f"/machines/{quote(part, safe='')}/config", 307)  # the browser sends the form there
