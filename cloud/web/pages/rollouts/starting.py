"""`/rollouts/new`: the form that starts a rollout, with a preview of its stages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.domain.permissions.access import Role
from cloud.domain.permissions.rules import OF_FORM, ROLE_ANYWHERE, AccessRule
from cloud.domain.rollouts.plan import RolloutKind
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.configurations.editing import Editor
from cloud.services.machines.fleet import FleetService
from cloud.services.releases.releases import ReleaseService
from cloud.services.rollouts import rollout_messages as m
from cloud.services.rollouts.rollouts import RolloutService
from cloud.web.common.site import author_of, fields, redirect, render, status_of, text_of
from schema import CountOrShare, ErrorKind, MachineError

DEFAULTS: Final[Mapping[str, str]] = {
    "what": "",
    "revision": "",
    "channel": "",
    "stages": "5, 25, 100",
    "tags": "",
    "place": "",
    "stop_after": "2",
    "soak": "10",
    "by_hand": "",
}
"""Fields of the form, with what they contain at first."""

_STAGE: Final = re.compile(r"(?:([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%?(?: of)?)? ?(?:tag (.+))?")


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /rollouts/new": ROLE_ANYWHERE,
    "POST /rollouts/new": OF_FORM,
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the form."""
    pages = _Pages(cloud)
    return [
        Route("/rollouts/new", pages.form, methods=["GET"]),
        Route("/rollouts/new", pages.act, methods=["POST"]),
    ]


class _Pages:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def form(self, request: Request) -> Response:
        """`GET /rollouts/new?what=&revision=&channel=`; `what` is that of the form."""
        query = request.query_params
        return await self._form(request, {name: query.get(name, value) for name, value in DEFAULTS.items()})

    async def act(self, request: Request) -> Response:
        """`POST /rollouts/new`: the preview, or with `start` the start on the `expected` number of machines."""
        form = await fields(request)
        values = {name: text_of(form, name) for name in DEFAULTS}
        service = RolloutService(self._cloud, author_of(request))
        try:
            if text_of(form, "start"):
                expected = _whole(text_of(form, "expected"), "0")
                organization, plan = _plan(form, _limit(form, expected))
                subject = await service.start_staged_rollout(organization, plan, expected)
                return redirect(f"/rollouts/{organization}/{subject}")
            shown = await service.preview_staged_rollout(*_plan(form, None))
            limit = _limit(form, shown.selected)
        except MachineError as error:
            if error.kind in (ErrorKind.PERMISSION, ErrorKind.UNAUTHENTICATED):
                raise
            return await self._form(request, values, error)
        return await self._form(request, values, shown=shown, limit=limit)

    async def _form(
        self,
        request: Request,
        values: Mapping[str, str],
        error: MachineError | None = None,
        shown: m.PreviewStagedRolloutResponse | None = None,
        limit: int | None = None,
    ) -> Response:
        author = author_of(request)
        choices: list[tuple[str, str]] = []
        owned = [each for each, owner in await Editor(self._cloud, author).organizations() if owner]
        for organization in owned:
            suffix = f" ({organization.name})" if len(owned) > 1 else ""
            listed = (await AppService(self._cloud, author).list_fragments(organization.id)).fragments
            choices += [
                (f"{organization.id}/fragment/{each.id}/", f"fragment {each.name}, newest {each.revision}{suffix}")
                for each in listed
            ]
            releases = (await ReleaseService(self._cloud, author).list_releases(organization.id)).targets
            versions = dict.fromkeys((each.program, each.version) for each in releases)
            choices += [
                (f"{organization.id}/program/{program}/{version}", f"{program} {version}{suffix}")
                for program, version in versions
            ]
        places = [place for place in await FleetService(self._cloud, author).locations() if place.role is Role.OWNER]
        return render(
            request,
            "rollout_new.html",
            status_of(error) if error else 200,
            choices=choices,
            places=[("", "everywhere"), *((place.id, place.path) for place in places)],
            values=values,
            shown=shown,
            limit=limit,
            error=error,
        )


def _limit(form: FormData, machines: int) -> int | None:
    """Return how many of the selected machines may fail; None for any number. INVALID."""
    text = text_of(form, "stop_after").strip()
    return CountOrShare.parse(text).of(machines) if text else None


def _plan(form: FormData, limit: int | None) -> tuple[str, m.RolloutPlan]:
    """Return the organization and the plan of a form, with the limit of failures. INVALID."""
    organization, kind, subject, version = (text_of(form, "what").split("/", 3) + [""] * 4)[:4]
    place = text_of(form, "place")
    return organization, m.RolloutPlan(
        kind,
        subject,
        text_of(form, "channel") if kind == RolloutKind.FRAGMENT else "",
        version or text_of(form, "revision"),
        stages_of(text_of(form, "stages")),
        _listed(text_of(form, "tags")),
        [place] if place else [],
        limit,
        60 * _whole(text_of(form, "soak") or "0", "10"),
        bool(text_of(form, "by_hand")),
    )


def stages_of(text: str) -> list[m.RolloutStage]:
    """Return stages from a text such as `tag lab, 5 %, 100`. INVALID."""
    stages = []
    for part in _listed(text):
        match = _STAGE.fullmatch(part)
        if match is None or not any(match.groups()):
            raise MachineError(
                f"{part[:60]!r} is not a stage",
                kind=ErrorKind.INVALID,
                remedy="write shares in percent and tags, with commas between, such as `tag lab, 5, 25, 100`",
            )
        percent, tag = match.groups()
        number = 100.0 if percent is None else float(percent)
        if not number:
            raise MachineError("a stage has 0 %", kind=ErrorKind.INVALID, remedy="write a share above 0")
        stages.append(m.RolloutStage(number, [tag.strip()] if tag else []))
    return stages


def _listed(text: str) -> list[str]:
    return [part for part in (each.strip() for each in text.split(",")) if part]


def _whole(text: str, such_as: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        raise MachineError(
            f"{text[:40]!r} is not a whole number", kind=ErrorKind.INVALID, remedy=f"write one such as {such_as}"
        )
    return int(text)
