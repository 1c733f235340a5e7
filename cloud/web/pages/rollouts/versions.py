"""`/rollouts/versions`: which machine runs which version of programs and fragments, those with problems first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cloud.domain.fleet.health import machine_state
from cloud.domain.fleet.listing import FleetFilter
from cloud.domain.fleet.positions import position_text, read_position
from cloud.domain.machines import reported
from cloud.domain.permissions.rules import ROLE_ANYWHERE, AccessRule
from cloud.services.common.base import Cloud
from cloud.services.machines.fleet import FleetPage, FleetService
from cloud.web.common.site import author_of, render

PAGE: Final = 100  # machines on a page
MAX_FRAGMENTS: Final = 8  # columns: the fragments that most machines of the page use


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A machine with the versions that it reports. `fragments` are in the order of the columns, "" for none."""

    part: str
    name: str
    location: str
    css: str
    state: str
    problems: int
    server: str
    agent: str
    fragments: tuple[str, ...]


RULES: Final[Mapping[str, AccessRule]] = {
    "GET /rollouts/versions": ROLE_ANYWHERE,
}


def routes(cloud: Cloud) -> list[BaseRoute]:
    """Return the route of the table."""

    async def versions(request: Request) -> Response:
        """`GET /rollouts/versions?q=&after=&before=`."""
        query = request.query_params
        text = query.get("q", "").strip()
        after, before = read_position(query.get("after", "")), read_position(query.get("before", ""))
        listed = await FleetService(cloud, author_of(request)).page(
            FleetFilter(text=text), "problems", PAGE, after=after, before=before, choices=False
        )
        columns = _columns(listed)
        return render(
            request,
            "rollout_versions.html",
            rows=_rows(listed, columns, cloud),
            columns=columns,
            text=text,
            matching=listed.matching,
            total=listed.counts.total,
            before=_url(text, before=position_text(listed.before)) if listed.before is not None else "",
            after=_url(text, after=position_text(listed.after)) if listed.after is not None else "",
        )

    return [Route("/rollouts/versions", versions, methods=["GET"])]


def _url(text: str, **position: str) -> str:
    return f"/rollouts/versions?{urlencode({'q': text, **position} if text else position)}"


def _columns(listed: FleetPage) -> list[tuple[str, str]]:
    """Return ids and names of the fragments that most machines of the page use directly, by name."""
    used = Counter(fragment for fragments in listed.fragments.values() for fragment in dict.fromkeys(fragments))
    return sorted((each for each, _ in used.most_common(MAX_FRAGMENTS)), key=lambda fragment: fragment[1])


def _rows(listed: FleetPage, columns: list[tuple[str, str]], cloud: Cloud) -> list[VersionRow]:
    rows = []
    for machine in listed.machines:
        part = machine.parts[0]
        css, state = machine_state(machine, cloud.clock())
        uses = {fragment for each in machine.parts for fragment, _ in listed.fragments.get(each.id, ())}
        running = [
            " ".join(
                sorted(
                    {number for each in machine.parts for number in reported.fragment_revisions(each.reported, subject)}
                )
            )
            for subject, _ in columns
        ]
        rows.append(
            VersionRow(
                part.id,
                machine.name,
                machine.location.path,
                css,
                state,
                sum(reported.problem_count(each.reported) for each in machine.parts),
                reported.server_version(part.reported),
                reported.version(part.reported, "agent"),
                tuple(
                    number or ("not yet" if subject in uses else "")
                    for number, (subject, _) in zip(running, columns, strict=True)
                ),
            )
        )
    return rows
