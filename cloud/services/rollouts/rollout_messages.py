"""Messages of machine.cloud.v1.RolloutService."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from cloud.domain.rollouts.plan import Plan, PlannedStage, checked


class RolloutStage(Struct, frozen=True):
    """A stage; see cloud.domain.rollouts.plan.Stage."""

    percent: float = 0.0
    tags: list[str] = []


class RolloutPlan(Struct, frozen=True):
    """What is rolled out, and how.

    `kind` is `fragment` or `program`, `subject` the id of the fragment or the name of the program, `revision` a
    revision or version. `channel` is the tag of the fragment that moves to it; empty for machines that name none.
    """

    kind: str = ""
    subject: str = ""
    channel: str = ""
    revision: str = ""
    stages: list[RolloutStage] = []
    tags: list[str] = []
    location_ids: list[str] = []
    stop_after: int | None = None
    soak_seconds: int | None = None
    by_hand: bool = False  # the next stage is reached only by a person

    def plan(self) -> Plan:
        """Return the plan; INVALID if it makes no sense."""
        stages = tuple(PlannedStage(stage.percent or 100.0, tuple(stage.tags)) for stage in self.stages)
        soak = Plan(()).soak_seconds if self.soak_seconds is None else self.soak_seconds
        new = Plan(stages, tuple(self.tags), tuple(self.location_ids), self.stop_after, soak, not self.by_hand)
        return checked(new)


class PreviewStage(Struct, frozen=True):
    """A stage in words, and how many machines it adds."""

    stage: str
    machines: int


class PreviewStagedRolloutResponse(Struct, frozen=True):
    """What a rollout would do. Of the `concerned` machines, its tags and locations select `selected`.

    `elsewhere` are parts of other organizations that use the fragment: they get the revision when it is finished.
    """

    called: str
    revision_from: str
    revision_to: str
    stages: list[PreviewStage]
    selected: int
    concerned: int
    elsewhere: int


class StagedStage(Struct, frozen=True):
    """A stage in words, whether it is `done`, `current` or `later`, and its machines.

    `others` were deleted, are late, or return. `waiting` includes machines that the stage has not reached.
    """

    stage: str
    state: str
    machines: int
    waiting: int
    updated: int
    healthy: int
    failed: int
    offline: int
    others: int


class StagedRollout(Struct, frozen=True):
    """A rollout. `next` says what it waits for, or what it did; `next_at` when that can end at the earliest."""

    id: str
    kind: str
    subject: str
    channel: str
    called: str
    revision_from: str
    revision_to: str
    plan: RolloutPlan
    state: str
    stage: int
    reason: str
    next: str
    next_at: datetime | None
    failures: int
    total: int
    created: datetime
    changed: datetime
    ended: datetime | None
    stages: list[StagedStage]
    returning: int
    returned: int
    started_by: str
    changed_by: str


class StagedRolloutEvent(Struct, frozen=True):
    """Something that happened to a rollout. `author` is the name of a key; empty if it happened by itself."""

    happened: datetime
    kind: str
    detail: str
    author: str


class GetStagedRolloutResponse(Struct, frozen=True):
    """A rollout with its history, newest first."""

    rollout: StagedRollout
    events: list[StagedRolloutEvent]


class WaitForStagedRolloutResponse(Struct, frozen=True):
    """A rollout, and what the next call is to name as `seen`."""

    rollout: StagedRollout
    seen: str


class StagedMachine(Struct, frozen=True):
    """A machine of a rollout."""

    part_id: str
    machine_id: str
    name: str
    stage: int
    state: str
    reason: str
    taken: datetime | None
    changed: datetime


class ListStagedMachinesResponse(Struct, frozen=True):
    """A page of machines, and the token of the next page."""

    machines: list[StagedMachine]
    next_page_token: str
