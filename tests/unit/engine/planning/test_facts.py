"""What a machine tells its agent about itself."""

from __future__ import annotations

from datetime import UTC, datetime

from engine.planning.maintenance import facts_of
from engine.views.status import ConfigStatus, JobStatus, MachineState, MachineStatus

NEXT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def job(name: str, next_run: datetime | None) -> JobStatus:
    return JobStatus(name, "1h", "motor", "GetPosition", False, next_run, (), (), "")


def test_the_next_runs_of_jobs_that_have_one() -> None:
    status = MachineStatus(
        "pi", "1", MachineState.RUNNING, NEXT, True, ConfigStatus("", "", None), (), (), (), (), (), False,
        jobs=(job("hourly", NEXT), job("always", None)),
    )  # fmt: skip
    assert facts_of(status)["jobs"] == {"hourly": "2026-01-02T03:04:00+00:00"}
