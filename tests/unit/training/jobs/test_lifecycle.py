"""The table of states is complete, and final states stay."""

from __future__ import annotations

from itertools import product

import pytest

from schema.errors import ErrorKind, MachineError
from training.jobs.lifecycle import FINAL, RUNNING, TABLE, Happening, JobState, next_state

WAYS = [
    ([Happening.START, Happening.COMPLETE], JobState.COMPLETED),
    ([Happening.START, Happening.FAIL], JobState.FAILED),
    ([Happening.CANCEL], JobState.CANCELED),
    ([Happening.START, Happening.CANCEL, Happening.STOP], JobState.CANCELED),
    ([Happening.START, Happening.CANCEL, Happening.CANCEL], JobState.CANCELING),
    ([Happening.START, Happening.CANCEL, Happening.LOSE], JobState.CANCELED),
    ([Happening.START, Happening.CANCEL, Happening.COMPLETE], JobState.CANCELED),
    ([Happening.START, Happening.LOSE], JobState.PENDING),
    ([Happening.START, Happening.LOSE, Happening.START, Happening.COMPLETE], JobState.COMPLETED),
    ([Happening.FAIL], JobState.FAILED),
]


@pytest.mark.parametrize(("happenings", "end"), WAYS)
def test_ways_through_the_table(happenings: list[Happening], end: JobState) -> None:
    state = JobState.PENDING
    for happening in happenings:
        state = next_state(state, happening)
    assert state is end


def test_every_pair_is_decided() -> None:
    assert set(TABLE) == set(product(JobState, Happening))


@pytest.mark.parametrize(("state", "happening"), list(product(sorted(FINAL), Happening)))
def test_final_states_stay(state: JobState, happening: Happening) -> None:
    with pytest.raises(MachineError, match=state.value) as caught:
        next_state(state, happening)
    assert caught.value.kind is ErrorKind.PRECONDITION


def test_only_a_waiting_job_starts() -> None:
    assert [state for state in JobState if TABLE[state, Happening.START] is not None] == [JobState.PENDING]


def test_a_job_completes_only_from_a_worker() -> None:
    assert {state for state in JobState if TABLE[state, Happening.COMPLETE] is not None} == RUNNING
