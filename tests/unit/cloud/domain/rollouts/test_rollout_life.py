"""What becomes of a machine in a rollout, and of the rollout: situations with the outcome that is due."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cloud.domain.configurations import offered
from cloud.domain.rollouts.life import (
    Facts,
    Life,
    MachineFacts,
    MachineState,
    Move,
    RolloutTiming,
    StagedRolloutState,
    decide,
    look,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
TIMING = RolloutTiming(timedelta(minutes=5), timedelta(minutes=10), late_fails=True)
BEGIN = Life(MachineState.WAITING, START)
UP = MachineFacts()
NEW = MachineFacts(runs=True)
DOWN = MachineFacts(online=False)
GONE = MachineFacts(online=False, runs=True)
MUTE = MachineFacts(reports=False)
ILL = MachineFacts(runs=True, problems=2)


def lived(looks: list[tuple[float, MachineFacts]], timing: RolloutTiming = TIMING, begin: Life = BEGIN) -> Life:
    """Return a machine after looks at minutes, with all deadlines between them."""
    life, due, previous = begin, None, UP
    for minute, facts in looks:
        now = START + timedelta(minutes=minute)
        while due is not None and due < now:
            moment = due
            life, due = look(timing, life, previous, moment)
            assert due is None or due > moment  # no look without an end
        life, due = look(timing, life, facts, now)
        previous = facts
    return life


SITUATIONS: list[tuple[str, list[tuple[float, MachineFacts]], str, dict[str, Any]]] = [
    ("online and asked", [(0, UP)], "waiting", {}),
    ("takes it", [(0, UP), (1, NEW)], "updated", {}),
    ("takes it and stays well", [(0, UP), (1, NEW), (6, NEW)], "healthy", {}),
    ("not well for long enough yet", [(0, UP), (1, NEW), (5.9, NEW)], "updated", {}),
    ("has it already", [(0, NEW), (5, NEW)], "healthy", {}),
    ("more problems for a moment", [(1, NEW), (2, ILL), (2.5, NEW), (6, NEW)], "healthy", {}),
    ("more problems that last", [(1, NEW), (2, ILL), (3, ILL)], "failed", {}),
    ("problems from before", [(1, ILL), (6, ILL)], "healthy", {"problems": 2}),
    ("one more than before", [(1, ILL), (2, ILL)], "failed", {"problems": 1}),
    ("problems at the end of the soak", [(1, NEW), (5.9, ILL), (6.1, ILL)], "updated", {}),
    ("problems beyond the end of the soak", [(1, NEW), (5.9, ILL), (7, ILL)], "failed", {}),
    ("problems after the soak", [(1, NEW), (6, NEW), (7, ILL), (9, ILL)], "healthy", {}),
    ("restarts", [(1, NEW), (2, GONE), (2.9, NEW), (6, NEW)], "healthy", {}),
    ("goes offline with the change", [(1, NEW), (2, GONE), (3, GONE)], "failed", {}),
    ("goes offline at once", [(0, UP), (0.1, DOWN), (1.2, DOWN)], "failed", {}),
    ("goes offline briefly before it takes it", [(0, UP), (0.1, DOWN), (0.9, UP), (1, NEW)], "updated", {}),
    ("was offline", [(0, DOWN), (60, DOWN)], "offline", {"up": False}),
    ("was offline and comes back", [(0, DOWN), (60, UP)], "waiting", {"up": False}),
    ("was offline, comes back and takes it", [(0, DOWN), (60, UP), (61, NEW), (66, NEW)], "healthy", {"up": False}),
    ("was offline, comes back and stays old", [(0, DOWN), (60, UP), (71, UP)], "failed", {"up": False}),
    ("offline long after it could take it", [(0, UP), (9, DOWN), (11, DOWN)], "offline", {}),
    ("does not take it", [(0, UP), (9.9, UP)], "waiting", {}),
    ("does not take it for long", [(0, UP), (10, UP)], "failed", {}),
    ("does not report what it runs", [(0, MUTE), (10, MUTE)], "late", {}),
    ("does not report what it runs, and vanishes", [(0, MUTE), (1, DOWN), (2, DOWN)], "failed", {}),
    ("rejects it", [(0, UP), (0.1, MachineFacts(rejected="no", problems=1))], "failed", {}),
    ("rejected the one before, too", [(0, MachineFacts(rejected="no", problems=1))], "waiting", {"problems": 1}),
    ("goes back by itself", [(1, NEW), (2, MachineFacts(failure="rolled back: it crashed"))], "failed", {}),
    ("goes back after the soak", [(1, NEW), (6, NEW), (9, MachineFacts(failure="x"))], "healthy", {}),
    ("goes back and says nothing", [(1, NEW), (2, UP), (6, UP)], "late", {}),
    ("goes back for a while", [(1, NEW), (2, UP), (7, UP), (8, NEW)], "healthy", {}),
    ("failed and recovers", [(1, NEW), (2, ILL), (3, ILL), (4, NEW), (60, NEW)], "failed", {}),
    ("deleted", [(0, UP), (1, MachineFacts(exists=False))], "skipped", {}),
    ("reports the same again and again", [(1, NEW), (1, NEW), (1, NEW), (6, NEW), (6, NEW)], "healthy", {}),
    ("the clock jumps ahead", [(0, UP), (1, NEW), (600, NEW)], "healthy", {}),
    ("the clock was set back", [(600, NEW), (1, NEW), (6, NEW)], "healthy", {}),
    ("returns", [(0, NEW), (1, UP)], "returned", {"state": MachineState.RETURNING}),
    ("has not returned", [(0, NEW), (60, NEW)], "returning", {"state": MachineState.RETURNING}),
    ("of a later stage", [(0, ILL)], "pending", {"state": MachineState.PENDING}),
]


@pytest.mark.parametrize(("looks", "state", "begin"), [each[1:] for each in SITUATIONS], ids=[s[0] for s in SITUATIONS])
def test_a_machine_ends_in_the_state_that_is_due(
    looks: list[tuple[float, MachineFacts]], state: str, begin: dict[str, Any]
) -> None:
    assert lived(looks, begin=replace(BEGIN, **begin)).state == state


def test_a_machine_that_may_have_reasons_to_wait_is_late_and_not_failed() -> None:
    patient = replace(TIMING, late_fails=False)
    assert lived([(0, UP), (10, UP)], patient).state is MachineState.LATE
    assert lived([(0, UP), (10, UP), (30, NEW), (35, NEW)], patient).state is MachineState.HEALTHY


def test_lookups_of_fragments_know_the_stored_state() -> None:
    assert offered.ACTIVE == StagedRolloutState.ACTIVE


def test_without_a_soak_a_machine_is_healthy_at_once() -> None:
    assert lived([(0, NEW)], replace(TIMING, soak=timedelta(0))).state is MachineState.HEALTHY


def test_a_failed_machine_says_why() -> None:
    assert lived([(1, NEW), (2, ILL), (3, ILL)]).reason == "it has 2 more problems than before the change"
    assert lived([(1, NEW), (2, GONE), (3, GONE)]).reason == "it went offline after it took the change"
    assert "rejects the configuration: no" in lived([(0, MachineFacts(rejected="no", problems=1))]).reason


HEALTHY, FAILED, WAITING = MachineState.HEALTHY, MachineState.FAILED, MachineState.WAITING
OFFLINE, UPDATED, LATE, SKIPPED = MachineState.OFFLINE, MachineState.UPDATED, MachineState.LATE, MachineState.SKIPPED

DECISIONS: list[tuple[str, Mapping[MachineState, int], dict[str, Any], Move]] = [
    ("waits for a machine", {WAITING: 1, HEALTHY: 9}, {}, Move.STAY),
    ("watches a machine", {UPDATED: 1, HEALTHY: 9}, {}, Move.STAY),
    ("all are healthy", {HEALTHY: 10}, {}, Move.NEXT),
    ("offline machines do not hold it up", {HEALTHY: 1, OFFLINE: 9}, {}, Move.NEXT),
    ("late machines do not hold it up", {HEALTHY: 1, LATE: 9}, {}, Move.NEXT),
    ("nobody has tried it", {OFFLINE: 10}, {}, Move.STAY),
    ("all have failed", {FAILED: 3}, {"failures": 3, "stop_after": 5}, Move.STAY),
    ("a stage without machines", {}, {}, Move.NEXT),
    ("a stage whose machines were deleted", {SKIPPED: 2}, {}, Move.NEXT),
    ("by hand", {HEALTHY: 10}, {"automatic": False}, Move.STAY),
    ("the last stage", {HEALTHY: 10}, {"stage": 2}, Move.FINISH),
    ("the last stage by hand", {HEALTHY: 10}, {"stage": 2, "automatic": False}, Move.STAY),
    ("the last stage of selected machines", {HEALTHY: 10}, {"stage": 2, "covers_all": False}, Move.STAY),
    ("as many failures as permitted", {FAILED: 2, HEALTHY: 8}, {"failures": 2, "stop_after": 2}, Move.NEXT),
    ("too many failures", {FAILED: 3, WAITING: 7}, {"failures": 3, "stop_after": 2}, Move.STOP),
    ("any failure", {FAILED: 1, WAITING: 9}, {"failures": 1, "stop_after": 0}, Move.STOP),
    ("failures without a limit", {FAILED: 9, HEALTHY: 1}, {"failures": 9}, Move.NEXT),
    ("too many failures by hand", {FAILED: 3}, {"failures": 3, "stop_after": 2, "automatic": False}, Move.STOP),
    ("paused", {FAILED: 3}, {"failures": 3, "stop_after": 2, "state": StagedRolloutState.PAUSED}, Move.STAY),
    ("stopped", {HEALTHY: 3}, {"state": StagedRolloutState.STOPPED}, Move.STAY),
    ("reverted", {HEALTHY: 3}, {"state": StagedRolloutState.REVERTED}, Move.STAY),
]


@pytest.mark.parametrize(("counts", "changes", "move"), [d[1:] for d in DECISIONS], ids=[d[0] for d in DECISIONS])
def test_a_rollout_does_what_is_due(counts: Mapping[MachineState, int], changes: dict[str, Any], move: Move) -> None:
    facts = replace(Facts(StagedRolloutState.ACTIVE, 0, 3, counts), **changes)
    assert decide(facts)[0] is move


def test_a_rollout_says_what_it_waits_for_and_why_it_stops() -> None:
    facts = Facts(StagedRolloutState.ACTIVE, 0, 3, {FAILED: 3, WAITING: 7}, failures=3, stop_after=2)
    assert decide(facts)[1] == "3 machines failed, more than 2"
    assert decide(replace(facts, stop_after=5))[1] == "waits for 7 machines of the stage to take the change"
