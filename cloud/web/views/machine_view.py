"""View models of the machine page: reports of a part, and its live snapshot while a user views it. Pure.

A snapshot comes from a machine and may have any content; one that does not match the types is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from cloud.domain.fleet.fleet import FleetMachine, FleetPart
from cloud.domain.fleet.health import state_of
from cloud.domain.fleet.watching import LiveSnapshot
from cloud.domain.machines.reported import problem_count
from cloud.domain.machines.signalling import REPORTED as WEBRTC
from cloud.web.views.agent_view import AgentView
from cloud.web.views.fleet.fleet_view import running
from rpc.pages import Drawing, Piece, Vertex, drawing, structure
from support.text.words import dom_id

Text = Annotated[str, Meta(max_length=2000)]
Names = Annotated[tuple[Text, ...], Meta(max_length=2000)]


class Resource(Struct, frozen=True):
    """A configured resource, as reported by its machine."""

    name: Text
    state: Text
    since: datetime
    model: Text = ""
    reason: Text = ""
    dependencies: Names = ()


class ShownProblem(Struct, frozen=True):
    """A problem of the configuration."""

    path: Text
    message: Text
    remedy: Text = ""


class ShownReadings(Struct, frozen=True):
    """Key, text and number of each value of a sensor, or the error of reading it."""

    values: Annotated[tuple[tuple[Text, Text, float | None], ...], Meta(max_length=1000)] = ()
    error: Text = ""


class Download(Struct, frozen=True):
    """A package that a machine is downloading. `done` and `size` are in bytes; `size` is 0 if unknown."""

    name: Text
    version: Text = ""
    done: Annotated[int, Meta(ge=0)] = 0
    size: Annotated[int, Meta(ge=0)] = 0


class Snapshot(Struct, frozen=True):
    """The live state that a machine sends while a user views it."""

    state: Text = ""
    started: datetime | None = None
    addresses: Annotated[tuple[Text, ...], Meta(max_length=100)] = ()
    rejected: Text = ""
    pending: Text = ""
    problems: Annotated[tuple[ShownProblem, ...], Meta(max_length=1000)] = ()
    resources: Annotated[tuple[Resource, ...], Meta(max_length=5000)] = ()
    readings: dict[Text, ShownReadings] = {}
    downloads: Annotated[tuple[Download, ...], Meta(max_length=100)] = ()
    omitted: int = 0  # resources left out for lack of space


EMPTY: Final = Snapshot()
_ADDRESS: Final = re.compile(r"([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class ShownFacts:
    """Stored facts about a part. `since` is the time of its last contact if it is offline."""

    id: str
    name: str
    main: bool
    css: str
    state: str
    since: datetime | None
    version: str
    agent: str  # version of the running agent
    platform: str
    host: str
    address: str
    link: str  # URL of the machine's own pages; "" if it has not reported whether they use TLS
    paths: str  # how clients elsewhere reach it; "" for a part that is not connected
    saved: int
    saved_at: datetime
    running: str
    rejected: str
    problems: int

    @property
    def connected(self) -> bool:
        """Whether the part is online, degraded or not."""
        return self.css in ("online", "degraded")


@dataclass(frozen=True, slots=True)
class PartView:
    """A part of a machine, for the template."""

    machine: str
    name: str
    location: str
    facts: ShownFacts
    parts: tuple[ShownFacts, ...]
    snapshot: Snapshot
    reported_at: datetime | None  # arrival time of the snapshot; None without one
    agent: AgentView

    @property
    def has_snapshot(self) -> bool:
        """Whether there is a snapshot."""
        return self.reported_at is not None

    @property
    def failing(self) -> tuple[Resource, ...]:
        """The resources that count as problems of the machine; those that wait for others come last."""
        broken = (item for item in self.snapshot.resources if _is_failing(item, self.snapshot))
        return tuple(sorted(broken, key=lambda item: item.state != "unhealthy"))

    @property
    def health(self) -> str:
        """State of the part in one word for the title; empty if all is well."""
        return "" if self.facts.css == "online" else self.facts.state

    @property
    def drawing(self) -> Drawing:
        """The graph of the part's resources."""
        return drawing(_vertices(self.snapshot))


def snapshot_of(report: LiveSnapshot | None) -> Snapshot | None:
    """Return the snapshot of a part; None if it has sent none or an invalid one."""
    if report is None:
        return None
    try:
        snapshot = msgspec.convert(report.snapshot, Snapshot)
    except msgspec.ValidationError:
        return None
    times = (snapshot.started, *(resource.since for resource in snapshot.resources))
    return snapshot if all(time is None or time.tzinfo is not None for time in times) else None


def view(machine: FleetMachine, subject: str, report: LiveSnapshot | None, agent: AgentView, now: datetime) -> PartView:
    """Return the view of the part `subject` of a machine, or of its main part if there is no such part."""
    parts = tuple(_facts(part, now) for part in machine.parts)
    facts = next((part for part in parts if part.id == subject), parts[0])
    snapshot = snapshot_of(report)
    return PartView(
        machine.id,
        machine.name,
        machine.location.path,
        facts,
        parts,
        snapshot or EMPTY,
        report.at if report and snapshot else None,
        agent,
    )


def pieces(shown: PartView) -> list[Piece]:
    """Return the live parts of the page."""
    facts, snapshot = shown.facts, shown.snapshot
    head = (shown.name, facts, shown.parts, snapshot.state, snapshot.started, snapshot.addresses, shown.has_snapshot)
    problems = (facts.rejected, snapshot.rejected, snapshot.pending, snapshot.problems, shown.failing)
    names = tuple(resource.name for resource in snapshot.resources)
    states = tuple(resource.state for resource in snapshot.resources)
    picture = shown.drawing
    return [
        Piece("head", "head", (shown,), head),
        Piece("software", "software", (shown,), (shown.agent, facts.connected)),
        Piece("problems", "problems", (shown,), problems),
        Piece("downloads", "downloads", (snapshot.downloads,), snapshot.downloads),
        Piece("counts", "counts", (snapshot.resources,), states),
        Piece("resources", "resources", (shown,), (names, shown.has_snapshot, snapshot.omitted, facts.css)),
        *(
            Piece(dom_id(resource.name), "resource", (resource, facts.id), resource, inside="resources")
            for resource in snapshot.resources
        ),
        Piece("restart", "restart", (facts,), facts.connected),
        Piece("graph", "graph", (picture,), structure(_vertices(snapshot))),
        *(Piece(item.id, "box", (item,), item, inside="graph") for item in picture.items),
    ]


def readings(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return the readings of sensors for the script of the page."""
    return [
        {"name": name, "values": list(reading.values), "error": reading.error}
        for name, reading in sorted(snapshot.readings.items())
    ]


def _vertices(snapshot: Snapshot) -> list[Vertex]:
    return [
        Vertex(resource.name, resource.state, resource.reason, resource.dependencies) for resource in snapshot.resources
    ]


def _facts(part: FleetPart, now: datetime) -> ShownFacts:
    css, state = state_of(part, now)
    return ShownFacts(
        id=part.id,
        name=part.name,
        main=part.main,
        css=css,
        state=state,
        since=part.seen if css == "offline" else None,
        version=_text(part.reported, "version"),
        agent=_text(part.reported, "agent_running"),
        platform=_text(part.reported, "platform"),
        host=_text(part.reported, "host"),
        address=_text(part.reported, "address"),
        link=_link(part.reported),
        paths=_paths(part.reported) if css in ("online", "degraded") else "",
        saved=part.revision,
        saved_at=part.saved,
        running=running(part.reported),
        rejected=_text(part.reported, "rejected"),
        problems=problem_count(part.reported),
    )


def _is_failing(resource: Resource, snapshot: Snapshot) -> bool:
    """Return whether a resource is a problem, as `engine.views.health` decides on the machine."""
    return resource.state == "unhealthy" or (resource.state == "unconfigured" and snapshot.state == "running")


def _link(reported: Mapping[str, Any]) -> str:
    address, secure = _text(reported, "address"), reported.get("secure")
    if not isinstance(secure, bool) or not _ADDRESS.fullmatch(address):
        return ""
    return f"{'https' if secure else 'http'}://{address}/"


def _paths(reported: Mapping[str, Any]) -> str:
    return "by WebRTC, or through this cloud" if reported.get(WEBRTC) else "through this cloud"


def _text(reported: Mapping[str, Any], key: str) -> str:
    value = reported.get(key, "")
    return value if isinstance(value, str) else ""
