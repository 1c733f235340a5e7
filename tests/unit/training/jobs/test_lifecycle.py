"""The table of states is complete, and final states stay."""

from __future__ import annotations

from itertools import product

import pytest

from schema.errors import ErrorKind, MachineError
from training.jobs.lifecycle import FINAL, RUNNING, TABLE, Happening, State, next_state

WAYS = [
    ([Happening.START, Happening.COMPLETE], State.COMPLETED),
    ([Happening.START, Happening.FAIL], State.FAILED),
    ([Happening.CANCEL], State.CANCELED),
    ([Happening.START, Happening.CANCEL, Happening.STOP], State.CANCELED),
    ([Happening.START, Happening.CANCEL, Happening.CANCEL], State.CANCELING),
    ([Happening.START, Happening.CANCEL, Happening.LOSE], State.CANCELED),
    ([Happening.START, Happening.CANCEL, Happening.COMPLETE], State.CANCELED),
    ([Happening.START, Happening.LOSE], State.PENDING),
    ([Happening.START, Happening.LOSE, Happening.START, Happening.COMPLETE], State.COMPLETED),
    ([Happening.FAIL], State.FAILED),
]


@pytest.mark.parametrize(("happenings", "end"), WAYS)
def test_ways_through_the_table(happenings: list[Happening], end: State) -> None:
    state = State.PENDING
    for happening in happenings:
        state = next_state(state, happening)
    assert state is end


def test_every_pair_is_decided() -> None:
    assert set(TABLE) == set(product(State, Happening))


@pytest.mark.parametrize(("state", "happening"), list(product(sorted(FINAL), Happening)))
def test_final_states_stay(state: State, happening: Happening) -> None:
    with pytest.raises(MachineError, match=state.value) as caught:
        next_state(state, happening)
    assert caught.value.kind is ErrorKind.PRECONDITION


def test_only_a_waiting_job_starts() -> None:
    assert [state for state in State if TABLE[state, Happening.START] is not None] == [State.PENDING]


def test_a_job_completes_only_from_a_worker() -> None:
    assert {state for state in State if TABLE[state, Happening.COMPLETE] is not None} == RUNNING
