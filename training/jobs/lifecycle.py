"""States of a training job: one table, and the function that reads it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from schema import ErrorKind, MachineError


class JobState(StrEnum):
    """State of a job. The values are stored."""

    PENDING = "pending"  # waits for a slot
    IN_PROGRESS = "in_progress"
    CANCELING = "canceling"  # its process has been asked to end
    COMPLETED = "completed"  # its model is in the registry
    FAILED = "failed"
    CANCELED = "canceled"


class JobHappening(StrEnum):
    """What can happen to a job."""

    START = "start"  # a worker takes it
    COMPLETE = "complete"  # its process ended well, and its model can be stored
    FAIL = "fail"
    LOSE = "lose"  # its worker disappeared, or gives it back
    CANCEL = "cancel"  # a person wants it to end
    STOP = "stop"  # its process has ended because of CANCEL


_P, _I, _G = JobState.PENDING, JobState.IN_PROGRESS, JobState.CANCELING
_C, _F, _X = JobState.COMPLETED, JobState.FAILED, JobState.CANCELED
_COLUMNS: Final = (_P, _I, _G, _C, _F, _X)

# A column for each state before, in the order of _COLUMNS; None: this cannot happen in that state, and is refused.
_ROWS: Final[Mapping[JobHappening, tuple[JobState | None, ...]]] = {
    #                     PENDING IN_PROGRESS CANCELING COMPLETED FAILED CANCELED
    JobHappening.START:     (_I,     None,       None,     None,     None,  None),
    JobHappening.COMPLETE:  (None,   _C,         _X,       None,     None,  None),
    JobHappening.FAIL:      (_F,     _F,         _X,       None,     None,  None),
    JobHappening.LOSE:      (None,   _P,         _X,       None,     None,  None),
    JobHappening.CANCEL:    (_X,     _G,         _G,       None,     None,  None),
    JobHappening.STOP:      (None,   None,       _X,       None,     None,  None),
}  # fmt: skip

TABLE: Final[Mapping[tuple[JobState, JobHappening], JobState | None]] = MappingProxyType(
    {
        (before, happening): after
        for happening, row in _ROWS.items()
        for before, after in zip(_COLUMNS, row, strict=True)
    }
)
"""The state after each happening in each state; None if it is refused."""

FINAL: Final = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELED})
"""States that a job never leaves."""

RUNNING: Final = frozenset({JobState.IN_PROGRESS, JobState.CANCELING})
"""States in which a job has a worker."""


_REFUSED: Final = {JobHappening.CANCEL: "be canceled", JobHappening.STOP: "be stopped", JobHappening.LOSE: "be lost"}


def next_state(state: JobState, happening: JobHappening) -> JobState:
    """Return the state after `happening`; PRECONDITION if it cannot happen in `state`."""
    after = TABLE[state, happening]
    if after is None:
        raise MachineError(
            f"the job is {state.value}, so it cannot {_REFUSED.get(happening, happening.value)}",
            kind=ErrorKind.PRECONDITION,
            remedy="submit a new job if you need one" if state in FINAL else "wait until it has ended, or cancel it",
        )
    return after
