"""Errors of the training client. Others are MachineErrors with the kind and the text of the cloud."""

from __future__ import annotations

from collections.abc import Sequence

from schema import ErrorKind, MachineError


class SubmissionRefused(MachineError):
    """The cloud refused a submission. `missing` lists every shortfall of the dataset; empty for other reasons."""

    def __init__(self, message: str, *, kind: ErrorKind, missing: Sequence[str] = ()) -> None:
        super().__init__(message, kind=kind)
        self.missing = tuple(missing)


class TrainingFailed(MachineError):
    """A job failed. `reason` is that of the cloud, `lines` are the last lines of the job's log, oldest first."""

    kind = ErrorKind.PRECONDITION

    def __init__(self, job: str, reason: str, lines: Sequence[str] = ()) -> None:
        super().__init__(f"the training job {job} failed: {reason or 'without a reason'}")
        self.job = job
        self.reason = reason
        self.lines = tuple(lines)

    def __str__(self) -> str:
        return "\n  ".join([self.message, *self.lines])


class TrainingCanceled(MachineError):
    """A job was canceled."""

    kind = ErrorKind.CANCELLED

    def __init__(self, job: str) -> None:
        super().__init__(f"the training job {job} was canceled")
        self.job = job
