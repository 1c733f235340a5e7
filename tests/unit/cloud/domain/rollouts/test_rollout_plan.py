"""The plan of a rollout: what is refused, and which machine is in which stage."""

from __future__ import annotations

from collections import Counter

import pytest

from cloud.domain.rollouts.plan import Plan, PlannedStage, assigned, checked, described
from schema import ErrorKind, MachineError

PARTS = {f"part{number}": frozenset({"lab"} if number < 4 else ()) for number in range(200)}


def numbers(*stages: PlannedStage, rollout: str = "r") -> list[int]:
    counts = Counter(assigned(rollout, stages, PARTS).values())
    return [counts[number] for number in range(len(stages))]


def test_stages_have_exact_shares_of_all_machines() -> None:
    assert numbers(PlannedStage(5), PlannedStage(25), PlannedStage(100)) == [10, 40, 150]


def test_a_share_is_rounded_up_so_that_a_stage_has_a_machine() -> None:
    assert numbers(PlannedStage(0.1), PlannedStage(100)) == [1, 199]


def test_a_tag_comes_first_and_counts_towards_the_shares_after_it() -> None:
    assert numbers(PlannedStage(tags=("lab",)), PlannedStage(5), PlannedStage(100)) == [4, 6, 190]
    assert numbers(PlannedStage(50, ("lab",)), PlannedStage(5)) == [2, 8]


def test_machines_that_no_stage_reaches_are_left_out() -> None:
    assert sum(numbers(PlannedStage(5), PlannedStage(10))) == 20


def test_the_first_machines_differ_from_rollout_to_rollout() -> None:
    first, second = (
        {p for p, s in assigned(r, (PlannedStage(5), PlannedStage(100)), PARTS).items() if not s} for r in ("a", "b")
    )
    assert first != second
    assert assigned("a", (PlannedStage(5),), PARTS) == assigned("a", (PlannedStage(5),), dict(reversed(PARTS.items())))


@pytest.mark.parametrize(
    "plan",
    [
        Plan(()),
        Plan((PlannedStage(0),)),
        Plan((PlannedStage(101),)),
        Plan((PlannedStage(float("nan")),)),
        Plan((PlannedStage(25), PlannedStage(5))),
        Plan((PlannedStage(5), PlannedStage(tags=("lab",)), PlannedStage(5))),
        Plan((PlannedStage(),), stop_after=-1),
        Plan((PlannedStage(),), soak_seconds=-1),
        Plan((PlannedStage(),), soak_seconds=10**9),
        Plan((PlannedStage(tags=("a,b",)),)),
        Plan(tuple(PlannedStage(number + 1) for number in range(21))),
        Plan((PlannedStage(),), tags=tuple(f"t{number}" for number in range(101))),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(plan: Plan) -> None:
    with pytest.raises(MachineError) as caught:
        checked(plan)
    assert caught.value.kind is ErrorKind.INVALID


def test_only_a_plan_without_selection_covers_all() -> None:
    assert Plan((PlannedStage(5), PlannedStage())).covers_all
    assert not Plan((PlannedStage(5),)).covers_all
    assert not Plan((PlannedStage(),), tags=("lab",)).covers_all
    assert not Plan((PlannedStage(tags=("lab",)),)).covers_all


def test_a_stage_in_words() -> None:
    assert [described(s) for s in (PlannedStage(5), PlannedStage(tags=("lab",)), PlannedStage(12.5, ("a", "b")))] == [
        "5 %",
        "tag lab",
        "12.5 % of tag a or b",
    ]


def test_a_stage_with_a_tag_of_no_machine_is_refused() -> None:
    """With a slip of the pen in its only early stage, a rollout would begin with all machines."""
    with pytest.raises(MachineError, match="stage 1: no selected machine has the tag lap or lba"):
        assigned("a", (PlannedStage(tags=("lap", "lba")), PlannedStage()), {"p1": {"lab"}, "p2": set()})
    parts: dict[str, set[str]] = {"p1": {"lab"}, "p2": set()}
    assert assigned("a", (PlannedStage(tags=("lab",)), PlannedStage(tags=("lab", "lap"))), parts) == {"p1": 0}
    assert assigned("a", (PlannedStage(tags=("lab",)),), {}) == {}
