"""`/releases`: signed releases of organizations, their rollouts, and the import of the cloud's own programs.

Publishing others needs keys, so commands do it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import trio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from cloud.domain.permissions.access import ObjectKind
from cloud.domain.permissions.rules import OF_FORM, ROLE_ANYWHERE, AccessRule, operator
from cloud.domain.releases import imports
from cloud.domain.releases.decision import RolloutState
from cloud.services.common.base import Cloud
from cloud.services.configurations.editing import Editor
from cloud.services.releases.release_messages import (
    ReleaseImport,
    ReleaseMetadata,
    ReleaseTarget,
    RolloutInfo,
    RolloutStatus,
)
from cloud.services.releases.releases import ReleaseService
from cloud.store.events import EVERY
from cloud.web.common.live import FRAME, LivePage, live, news_of
from cloud.web.common.site import author_of, fields, redirect, render, render_macro, status_of, text_of
from rpc.pages import Patcher, Piece
from schema import ErrorKind, MachineError, SemanticVersion
from support import version as version_of_cloud
from uplink.releases import DEV, STABLE

SOON: Final = timedelta(days=30)
"""Metadata of people that expires within this time is marked."""

ACTIONS: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    RolloutState.ACTIVE.value: (("paused", "Pause"), ("stopped", "Stop"), ("finished", "Release to all")),
    RolloutState.PAUSED.value: (("active", "Resume"), ("stopped", "Stop"), ("finished", "Release to all")),
    RolloutState.STOPPED.value: (("active", "Resume"), ("finished", "Release to all")),
}
"""Buttons of a rollout that is not finished, by its state: the state that each sets, and its label."""

COLOURS: Final = {
    RolloutState.ACTIVE.value: "ready",
    RolloutState.PAUSED.value: "configuring",
    RolloutState.STOPPED.value: "unhealthy",
    RolloutState.FINISHED.value: "unconfigured",
    RolloutState.REVERTED.value: "unconfigured",
}


@dataclass(frozen=True, slots=True)
class Version:
    """A version with its files. `may_start`: a rollout of it can be started."""

    program: str
    version: str
    channels: str
    platforms: tuple[ReleaseTarget, ...]
    may_start: bool


@dataclass(frozen=True, slots=True)
class Rolling:
    """A rollout, and how many machines are in which state."""

    info: RolloutInfo
    counts: str
    actions: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class OrganizationReleases:
    """The releases of one organization."""

    id: str
    name: str
    owner: bool
    versions: tuple[Version, ...]
    rollouts: tuple[Rolling, ...]
    finished: tuple[RolloutInfo, ...]
    metadata: tuple[ReleaseMetadata, ...]
    by_cloud: bool  # the cloud keeps the keys
    imported: ReleaseImport


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /releases": ROLE_ANYWHERE,
    "POST /releases": OF_FORM,
    "WS /live/releases": ROLE_ANYWHERE,
    "GET /releases/{organization}/{program}/{version}": operator(ObjectKind.ORGANIZATION, "organization"),
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the routes of the page and its forms."""
    pages = _Pages(cloud)
    return [
        Route("/releases", pages.index),
        Route("/releases", pages.act, methods=["POST"]),
        Route("/releases/{organization}/{program}/{version}", pages.show),
        WebSocketRoute("/live/releases", pages.live),
    ]


class _Pages:
    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def index(self, request: Request) -> Response:
        """`GET /releases`."""
        return await self._index(request)

    async def _index(self, request: Request, error: MachineError | None = None) -> Response:
        author = author_of(request)
        service = ReleaseService(self._cloud, author)
        groups = []
        for organization, owner in await Editor(self._cloud, author).organizations():
            listed = await service.list_releases(organization.id)
            rollouts = []
            for info in listed.rollouts:
                if info.state in ACTIONS and not info.staged:
                    status = await service.get_rollout(organization.id, info.program, info.version)
                    rollouts.append(Rolling(info, counted(status), ACTIONS[info.state]))
            finished = tuple(info for info in listed.rollouts if info.state not in ACTIONS and not info.staged)
            versions = versions_of(listed.targets, listed.rollouts)
            groups.append(
                OrganizationReleases(
                    organization.id,
                    organization.name,
                    owner,
                    versions,
                    tuple(rollouts),
                    finished,
                    tuple(listed.metadata),
                    listed.keys_held_by == "cloud",
                    await service.get_release_import(organization.id),
                )
            )
        soon = self._cloud.clock() + SOON
        code = status_of(error) if error else 200
        return render(
            request,
            "releases.html",
            code,
            groups=groups,
            soon=soon,
            colours=COLOURS,
            version=version_of_cloud(),
            error=error,
            live="/live/releases" if any(group.by_cloud for group in groups) else "",
        )

    async def live(self, socket: WebSocket) -> None:
        """`/live/releases`: send the progress of imports."""
        await live(self._cloud, socket, self._follow)

    async def _follow(self, page: LivePage) -> None:
        patcher = Patcher(lambda piece: render_macro("releases_parts.html", piece.macro, *piece.arguments))
        service = ReleaseService(self._cloud, page.author)
        async with news_of(self._cloud, (imports.TOPIC, EVERY)) as news:
            while True:
                pieces = []
                for organization, owner in await Editor(self._cloud, page.author).organizations():
                    info = await service.get_release_import(organization.id)
                    arguments = (organization.id, owner, version_of_cloud(), info)
                    pieces.append(Piece(f"import-{organization.id}", "importing", arguments, info))
                if patch := patcher.patch(pieces):
                    await page.send(patch=patch)
                await trio.sleep(FRAME)
                await news.next()

    async def act(self, request: Request) -> Response:
        """`POST /releases`: start a rollout (`percent`, `tags`, `stop_after`), its `state`, or an `import`."""
        form = await fields(request)
        service = ReleaseService(self._cloud, author_of(request))
        where = [text_of(form, name) for name in ("organization", "program", "version")]
        organization, program, number = where
        try:
            if text_of(form, "import"):
                await service.start_release_import(organization)
            elif state := text_of(form, "state"):
                await service.set_rollout_state(organization, program, number, state)
            else:
                tags = [tag for tag in (text.strip() for text in text_of(form, "tags").split(",")) if tag]
                percent, limit = _number(text_of(form, "percent", "100")), text_of(form, "stop_after")
                stop_after = int(_number(limit)) if limit else None
                await service.start_rollout(
                    organization, program, number, percent=percent, tags=tags, stop_after=stop_after
                )
        except MachineError as error:
            if error.kind in (ErrorKind.INVALID, ErrorKind.PRECONDITION, ErrorKind.EXHAUSTED):
                return await self._index(request, error)
            raise
        return redirect("/releases")

    async def show(self, request: Request) -> Response:
        """`GET /releases/<organization>/<program>/<version>`: a rollout with its machines."""
        names = request.path_params
        service = ReleaseService(self._cloud, author_of(request))
        status = await service.get_rollout(names["organization"], names["program"], names["version"])
        return render(request, "rollout.html", status=status, counts=counted(status), colours=COLOURS)


def versions_of(targets: Sequence[ReleaseTarget], rollouts: Sequence[RolloutInfo]) -> tuple[Version, ...]:
    """Return the versions by program, the newest first."""
    groups: dict[tuple[str, str], list[ReleaseTarget]] = {}
    for target in targets:
        groups.setdefault((target.program, target.version), []).append(target)
    started = {(entry.program, entry.version) for entry in rollouts}
    versions = []
    newest = sorted(groups.items(), key=lambda item: SemanticVersion.parse(item[0][1]), reverse=True)
    for (program, version), files in sorted(newest, key=lambda item: item[0][0]):
        channels = {channel for file in files for channel in file.channels}
        may_start = STABLE not in channels and (program, version) not in started
        shown = ", ".join(channel for channel in (STABLE, DEV) if channel in channels)
        versions.append(Version(program, version, shown, tuple(files), may_start))
    return tuple(versions)


def counted(status: RolloutStatus) -> str:
    """Return how many machines are in which state, the most frequent first."""
    counts = Counter(machine.state.replace("_", " ") for machine in status.machines)
    return ", ".join(f"{number} {state}" for state, number in counts.most_common()) or "none yet"


def _number(text: str) -> float:
    if not (text.isascii() and text.replace(".", "", 1).isdigit() and len(text) < 10):
        raise MachineError(f"{text[:40]!r} is not a number", kind=ErrorKind.INVALID, remedy="write one such as 10")
    return float(text)
