"""The table of states is complete, and final states stay."""

from __future__ import annotations

from itertools import product

import pytest

from schema.errors import ErrorKind, MachineError
from training.jobs.lifecycle import FINAL, RUNNING, TABLE, JobHappening, JobState, next_state

WAYS = [
    ([JobHappening.START, JobHappening.COMPLETE], JobState.COMPLETED),
    ([JobHappening.START, JobHappening.FAIL], JobState.FAILED),
    ([JobHappening.CANCEL], JobState.CANCELED),
    ([JobHappening.START, JobHappening.CANCEL, JobHappening.STOP], JobState.CANCELED),
    ([JobHappening.START, JobHappening.CANCEL, JobHappening.CANCEL], JobState.CANCELING),
    ([JobHappening.START, JobHappening.CANCEL, JobHappening.LOSE], JobState.CANCELED),
    ([JobHappening.START, JobHappening.CANCEL, JobHappening.COMPLETE], JobState.CANCELED),
    ([JobHappening.START, JobHappening.LOSE], JobState.PENDING),
    ([JobHappening.START, JobHappening.LOSE, JobHappening.START, JobHappening.COMPLETE], JobState.COMPLETED),
    ([JobHappening.FAIL], JobState.FAILED),
]


@pytest.mark.parametrize(("happenings", "end"), WAYS)
def test_ways_through_the_table(happenings: list[JobHappening], end: JobState) -> None:
    state = JobState.PENDING
    for happening in happenings:
        state = next_state(state, happening)
    assert state is end


def test_every_pair_is_decided() -> None:
    assert set(TABLE) == set(product(JobState, JobHappening))


@pytest.mark.parametrize(("state", "happening"), list(product(sorted(FINAL), JobHappening)))
def test_final_states_stay(state: JobState, happening: JobHappening) -> None:
    with pytest.raises(MachineError, match=state.value) as caught:
        next_state(state, happening)
    assert caught.value.kind is ErrorKind.PRECONDITION


def test_only_a_waiting_job_starts() -> None:
    assert [state for state in JobState if TABLE[state, JobHappening.START] is not None] == [JobState.PENDING]


def test_a_job_completes_only_from_a_worker() -> None:
    assert {state for state in JobState if TABLE[state, JobHappening.COMPLETE] is not None} == RUNNING
