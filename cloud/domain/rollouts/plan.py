"""The plan of a rollout, and which machine belongs to which stage. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

from cloud.domain.organizations.tags import checked_tags
from cloud.domain.releases.decision import share
from cloud.values.limits import ROLLOUT_STAGES
from schema import ErrorKind, MachineError

MAX_SELECTED: Final = 100
"""Tags, and locations, of one rollout."""
LONGEST_SOAK: Final = timedelta(days=30)
MOST_FAILURES: Final = 1_000_000


class RolloutKind(StrEnum):
    """What is rolled out."""

    FRAGMENT = "fragment"
    PROGRAM = "program"


class PlannedStage(Struct, frozen=True):
    """A stage. When it is reached, `percent` of the selected machines are to have the change, those of former stages
    included; with `tags`, `percent` of the selected machines that have one of them.
    """

    percent: float = 100.0
    tags: tuple[str, ...] = ()


class Plan(Struct, frozen=True):
    """How a rollout proceeds."""

    stages: tuple[PlannedStage, ...]
    tags: tuple[str, ...] = ()  # a machine needs one of them; empty for all
    locations: tuple[str, ...] = ()  # a machine is in one of them or below; empty for all
    stop_after: int | None = None  # most machines that may fail
    soak_seconds: int = 600  # how long a machine must be healthy
    automatic: bool = True  # the next stage is reached by itself

    @property
    def covers_all(self) -> bool:
        """Whether the last stage has every machine that is concerned."""
        return not self.tags and not self.locations and not self.stages[-1].tags and self.stages[-1].percent == 100


def checked(plan: Plan) -> Plan:
    """Return a plan with its tags in order; INVALID if it makes no sense."""
    if not plan.stages:
        raise MachineError("the rollout has no stage", kind=ErrorKind.INVALID, remedy="give one such as 100 %")
    ROLLOUT_STAGES.check(len(plan.stages), "the rollout")
    stages, reached = [], 0.0
    for number, stage in enumerate(plan.stages, 1):
        if not 0 < stage.percent <= 100:
            raise MachineError(
                f"stage {number}: {stage.percent:g} % is not above 0 and at most 100", kind=ErrorKind.INVALID
            )
        if not stage.tags and stage.percent <= reached:
            raise MachineError(
                f"stage {number}: {stage.percent:g} % does not add machines to the {reached:g} % before",
                kind=ErrorKind.INVALID,
                remedy="order the stages by their share, such as 5, 25, 100",
            )
        reached = reached if stage.tags else stage.percent
        stages.append(PlannedStage(stage.percent, _few(checked_tags(stage.tags), "tags")))
    if plan.stop_after is not None and not 0 <= plan.stop_after <= MOST_FAILURES:
        raise MachineError(
            f"stop_after: {plan.stop_after} is not 0 to {MOST_FAILURES:,} machines", kind=ErrorKind.INVALID
        )
    if not 0 <= plan.soak_seconds <= LONGEST_SOAK.total_seconds():
        raise MachineError(
            f"soak_seconds: {plan.soak_seconds} is not 0 to {LONGEST_SOAK.days} days", kind=ErrorKind.INVALID
        )
    return Plan(
        tuple(stages),
        _few(checked_tags(plan.tags), "tags"),
        _few(sorted(set(plan.locations)), "locations"),
        plan.stop_after,
        plan.soak_seconds,
        plan.automatic,
    )


def _few(values: Sequence[str], what: str) -> tuple[str, ...]:
    if len(values) > MAX_SELECTED:
        raise MachineError(f"a rollout has at most {MAX_SELECTED} {what}", kind=ErrorKind.INVALID)
    return tuple(values)


def assigned(rollout: str, stages: Sequence[PlannedStage], parts: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Return the number of the stage, from 0, of each part, given the tags of all selected parts.

    INVALID if none has a tag of a stage, which would let the next stage begin at once. Parts that no stage reaches are
    left out. The order of parts depends only on the rollout and the part, so that it differs from rollout to rollout,
    and the numbers of parts do not depend on it.
    """
    order = sorted(parts, key=lambda part: (share(rollout, part), part))
    result: dict[str, int] = {}
    for number, stage in enumerate(stages):
        eligible = [part for part in order if not stage.tags or not frozenset(stage.tags).isdisjoint(parts[part])]
        if parts and not eligible:
            raise MachineError(
                f"stage {number + 1}: no selected machine has the tag {' or '.join(stage.tags)}",
                kind=ErrorKind.INVALID,
                remedy="correct the tag, add it to machines, or leave the stage out",
            )
        target = -int(-stage.percent * len(eligible) // 100)  # rounded up: a stage of few machines has one
        missing = target - sum(part in result for part in eligible)
        for part in eligible:
            if missing <= 0:
                break
            if part not in result:
                result[part] = number
                missing -= 1
    return result


def described(stage: PlannedStage) -> str:
    """Return a stage in words."""
    if not stage.tags:
        return f"{stage.percent:g} %"
    return f"{'' if stage.percent == 100 else f'{stage.percent:g} % of '}tag {' or '.join(stage.tags)}"
