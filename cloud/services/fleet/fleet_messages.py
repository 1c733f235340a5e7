"""Messages of machine.cloud.v1.FleetService."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from cloud.domain.fleet.listing import FleetFilter as Conditions


class FleetFilter(Struct, frozen=True):
    """Conditions for machines, which must all hold; see cloud.domain.fleet.listing.FleetFilter."""

    text: str = ""
    location_id: str = ""
    state: str = ""
    agent_version: str = ""
    server_version: str = ""
    update: str = ""
    problems: bool = False
    tags: list[str] = []
    fragment_id: str = ""

    def conditions(self) -> Conditions:
        """Return the conditions for the database."""
        return Conditions(
            self.text,
            self.location_id,
            self.state,
            self.agent_version,
            self.server_version,
            self.update,
            self.problems,
            tuple(self.tags),
            self.fragment_id,
        )


class FleetMachine(Struct, frozen=True):
    """A machine of a list. Versions, platform and revisions are those of its main part."""

    id: str
    name: str
    location_id: str
    location: str
    part_id: str
    state: str
    last_seen: datetime | None
    server_version: str
    agent_version: str
    platform: str
    revision: int
    running_revision: str
    problems: int
    rejected: str
    updates: list[str]
    tags: list[str]
    fragments: list[str]


class ListFleetMachinesResponse(Struct, frozen=True):
    """A page of machines, the token of the next page, and numbers of machines."""

    machines: list[FleetMachine]
    next_page_token: str
    matching: int
    total: int
    online: int
    degraded: int
    offline: int
    awaiting: int
    updating: int
    problems: int


class FleetWork(Struct, frozen=True):
    """Work on each machine of a job; see cloud.domain.fleet.work.Work. `value_json` is the value as JSON."""

    kind: str = ""
    fragment_id: str = ""
    fragment_version: str = ""
    path: str = ""
    value_json: str = ""
    program: str = ""
    version: str = ""
    tags: list[str] = []
    location_id: str = ""


class Refusal(Struct, frozen=True):
    """Why a machine is not changed."""

    name: str
    reason: str


class PreviewFleetJobResponse(Struct, frozen=True):
    """What a job would do.

    Of the `selected` machines, `not_permitted` are those that the caller does not own. Of `examined` machines, the
    first ones, `changing` would change and `unchanged` would not; the rest are refused. `difference` are the changes
    of the machine `example`, without secrets.
    """

    work: str
    selected: int
    not_permitted: int
    examined: int
    changing: int
    unchanged: int
    refused: int
    refusals: list[Refusal]
    example: str
    difference: list[str]


class FleetJob(Struct, frozen=True):
    """A job, with the number of machines that have each outcome. `kind` and `work` say what it does."""

    id: str
    kind: str
    work: str
    undo_of: str
    state: str
    total: int
    changed: int
    unchanged: int
    failed: int
    skipped: int
    created: datetime
    ended: datetime | None
    author: str
    revertible: bool


class FleetJobMachine(Struct, frozen=True):
    """The outcome of a machine."""

    position: int
    machine_id: str
    name: str
    state: str
    reason: str
    ended: datetime | None


class GetFleetJobResponse(Struct, frozen=True):
    """A job, and some of its machines in order."""

    job: FleetJob
    machines: list[FleetJobMachine]


class FleetView(Struct, frozen=True):
    """A saved view: `query` is that of the page's address. It belongs to the caller unless it is `shared`."""

    id: str
    name: str
    query: str
    shared: bool
