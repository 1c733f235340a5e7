"""The report of the agent: contents for each state of a record, and its size limit."""

import msgspec
import pytest

from agent.control.report import (
    MAX_BYTES,
    MAX_PROBLEMS,
    AgentReport,
    ExitReport,
    ProblemReport,
    ProgramReport,
    WaitReport,
    encode,
    problems_of,
    program_report,
)
from agent.update.events import Failed, Offered, Started, Succeeded, WindowOpened
from agent.update.record import Release, ReleaseOffer, ReleaseSlots, UpdateRecord, UpdateResult, UpdateStep
from agent.update.steps import advance
from schema.errors import ConfigError

OLD = Release("1.0.0", "0" * 64, 10, "https://cloud.example/old", "linux/x86_64")
NEW = Release("1.1.0", "1" * 64, 10, "https://cloud.example/new", "linux/x86_64")
WAITING = (WaitReport("the maintenance sensor denies it", 5.0),)


def record(*steps: UpdateStep) -> UpdateRecord:
    """Return the record of an update that has completed these steps."""
    state = advance(UpdateRecord("machine-server", ReleaseSlots(OLD)), Offered(ReleaseOffer(NEW)), 1.0).record
    for step in steps:
        state = advance(state, Succeeded(step, NEW.sha256), 2.0).record
    return state


def test_a_program_that_is_not_installed() -> None:
    assert program_report(None) == ProgramReport()


def test_a_program_without_an_update() -> None:
    report = program_report(UpdateRecord("machine-server", ReleaseSlots(OLD)), running=True, since=3.0, serving=True)
    assert report == ProgramReport(version="1.0.0", sha256=OLD.sha256, running=True, since=3.0, serving=True)


def test_an_update_before_its_window_names_what_it_waits_for() -> None:
    waiting = program_report(
        record(UpdateStep.RESOLVE, UpdateStep.DOWNLOAD, UpdateStep.VERIFY, UpdateStep.STAGE),
        running=True,
        waiting_for=WAITING,
    )
    assert (waiting.version, waiting.target, waiting.step, waiting.waiting_for) == ("1.0.0", "1.1.0", "wait", WAITING)


def test_an_update_that_is_prepared_waits_for_nothing() -> None:
    assert program_report(record(UpdateStep.RESOLVE), waiting_for=WAITING).waiting_for == ()


def test_a_failure_and_its_pause_are_visible() -> None:
    state = advance(record(UpdateStep.RESOLVE), Failed(UpdateStep.DOWNLOAD, NEW.sha256, "no space " * 200), 4.0).record
    report = program_report(state)
    assert (report.step, report.pausing, report.deadline) == ("download", True, 14.0)
    assert report.error.startswith("no space no space")
    assert len(report.error) == 500


def test_the_release_on_trial_is_the_version() -> None:
    state = record(UpdateStep.RESOLVE, UpdateStep.DOWNLOAD, UpdateStep.VERIFY, UpdateStep.STAGE)
    state = advance(state, WindowOpened(), 3.0).record
    state = advance(state, Succeeded(UpdateStep.SWITCH, NEW.sha256), 4.0).record
    assert program_report(state).version == "1.1.0"
    for _ in range(4):
        state = advance(state, Started(NEW.sha256), 5.0).record
    rolled_back = program_report(state)
    assert (rolled_back.version, rolled_back.step) == ("1.0.0", "roll_back")
    assert rolled_back.history[-1].result is UpdateResult.ROLLED_BACK
    assert [entry.version for entry in rolled_back.quarantine] == ["1.1.0"]


def test_problems_are_limited_and_counted() -> None:
    problems = problems_of(ConfigError(f"agent.a{number}", "is wrong") for number in range(MAX_PROBLEMS + 7))
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1] == ProblemReport("", "and 7 further problems")


def test_a_report_never_exceeds_its_limit_and_keeps_the_newest() -> None:
    exits = tuple(ExitReport(float(number), "killed by signal 9 " * 25, 1.0) for number in range(200))
    report = AgentReport(
        9.0, ProgramReport(exits=exits), ProgramReport(exits=exits), problems=(ProblemReport("a", "b"),)
    )
    data = encode(report)
    assert len(data) <= MAX_BYTES
    kept = msgspec.json.decode(data, type=AgentReport)
    assert 0 < len(kept.agent.exits) < 200
    assert kept.agent.exits[-1] == exits[-1]


def test_a_small_report_is_not_changed() -> None:
    report = AgentReport(9.0, ProgramReport(version="1.0.0"), ProgramReport(), offline="unreachable")
    assert msgspec.json.decode(encode(report), type=AgentReport) == report


def test_a_report_that_cannot_be_shortened_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be shortened"):
        encode(AgentReport(9.0, ProgramReport(waiting_for=WAITING * MAX_BYTES), ProgramReport()))
