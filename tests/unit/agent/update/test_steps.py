"""The table of an update: what each event leads to in each step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent.update.events import (
    DeadlinePassed,
    Event,
    Failed,
    HoldRequested,
    Offered,
    ProgramObserved,
    Resumed,
    RollBackRequested,
    Started,
    Succeeded,
    WindowOpened,
)
from agent.update.record import QuarantinedRelease, ReleaseSlots, UpdateRecord, UpdateResult, UpdateStep
from agent.update.steps import MAX_TRIES, STAY_UP, Action, advance, pause, release_to_start, subject
from agent.update.table import ENDS, TABLE, edges, markdown, mermaid
from tests.unit.agent.update.make import CURRENT, FACTORY, IDLE, NEWER, NOW, OLD, TARGET, at, offer, release

PAGE = Path(__file__).parents[4] / "docs" / "design" / "agent.md"
PREPARING = [UpdateStep.RESOLVE, UpdateStep.DOWNLOAD, UpdateStep.VERIFY, UpdateStep.STAGE]
IN_QUARANTINE = replace(IDLE, quarantine=(QuarantinedRelease(TARGET.sha256, TARGET.version, "it crashed", NOW),))
LATE = NOW + 100
"""The deadline of the records from `at`."""


def step_after(record: UpdateRecord, event: Event, now: float = NOW) -> UpdateStep | None:
    """Return the step after an event; the action must be that of the step."""
    after, action = advance(record, event, now)
    if after.progress is None:
        assert action in (Action.CLEAN, Action.NOTHING)
        return None
    assert action in (after.progress.step, Action.NOTHING, Action.PAUSE)
    return after.progress.step


def results(record: UpdateRecord) -> list[tuple[str, str, UpdateResult]]:
    return [(outcome.version_from, outcome.version_to, outcome.result) for outcome in record.history]


def failed(record: UpdateRecord, permanent: bool = False) -> Failed:
    assert record.progress is not None
    return Failed(record.progress.step, subject(record).sha256, "a reason", permanent)


def works(sha256: str = TARGET.sha256, **fields: object) -> ProgramObserved:
    facts: dict[str, object] = {"up": STAY_UP, "served": True, "configured": True, **fields}
    return ProgramObserved(sha256, **facts)  # type: ignore[arg-type]


def test_the_page_has_the_table() -> None:
    assert markdown() in PAGE.read_text("utf-8"), markdown()


def ways(step: UpdateStep) -> Iterator[str]:
    """Yield where events lead from a step, other than offers and requests of a person."""
    for attempts in range(MAX_TRIES + 1):
        for pausing in (False, True):
            record = at(step, attempts=attempts, pausing=pausing)
            sha256 = subject(record).sha256
            for event in (
                Succeeded(step, sha256), failed(record), failed(record, True), DeadlinePassed(), WindowOpened(),
                Started(sha256), works(sha256), works(sha256, served=False), Resumed(),
            ):  # fmt: skip
                if isinstance(event, Failed) and step is UpdateStep.WAIT:
                    continue  # waiting cannot fail
                after, _ = advance(record, event, LATE)
                if after.progress is not None:
                    left_current = after.slots.current != record.slots.current
                    if after.progress.step is not step or left_current:
                        yield after.progress.step.value
                elif step is UpdateStep.RECOVER:
                    yield "end"
                else:
                    yield "confirm" if after.history[-1].result is UpdateResult.UPDATED else "reject"


@pytest.mark.parametrize("step", UpdateStep)
def test_the_diagram_has_exactly_the_ways_out_of_a_step(step: UpdateStep) -> None:
    assert set(ways(step)) == {target for start, target, _ in edges() if start == step.value}
    assert all(f"{start} --> {target}: " in mermaid() for start, target, _ in edges())
    assert {target for _, target, _ in edges()} <= {*(each.value for each in UpdateStep), *ENDS}


def test_every_step_has_a_row() -> None:
    assert list(TABLE) == list(UpdateStep)


@pytest.mark.parametrize("step", UpdateStep)
def test_success_leads_to_the_next_step(step: UpdateStep) -> None:
    record = at(step)
    after = step_after(record, Succeeded(step, subject(record).sha256))
    assert after is (TABLE[step].then or step)


@pytest.mark.parametrize("step", UpdateStep)
def test_the_next_start_continues_an_interrupted_step(step: UpdateStep) -> None:
    after, action = advance(at(step, attempts=1), Resumed(), NOW + 50)
    assert after.progress is not None
    assert after.progress.step is TABLE[step].again is action
    assert after.progress.deadline == NOW + 50 + TABLE[action].limit
    assert after.progress.attempts == 1


def test_the_next_start_repeats_a_pause_in_full() -> None:
    after, action = advance(at(UpdateStep.DOWNLOAD, attempts=3, pausing=True), Resumed(), NOW + 50)
    assert action is Action.PAUSE
    assert after.progress is not None
    assert after.progress.deadline == NOW + 50 + pause(3)


def test_the_next_start_of_an_idle_program_cleans_up() -> None:
    assert advance(IDLE, Resumed(), NOW) == (IDLE, Action.CLEAN)


@pytest.mark.parametrize("step", PREPARING)
def test_a_transient_failure_leads_to_a_pause(step: UpdateStep) -> None:
    record = at(step, attempts=2)
    for event, now in ((failed(record), LATE), (DeadlinePassed(), LATE)):
        after, action = advance(record, event, now)
        assert action is Action.PAUSE
        assert after.progress is not None
        assert (after.progress.step, after.progress.attempts, after.progress.pausing) == (TABLE[step].again, 3, True)
        assert after.progress.deadline == LATE + pause(3)
        assert after.progress.error in ("a reason", f"{step.value} took longer than {TABLE[step].limit / 60:g} minutes")
        assert not after.history
        assert advance(after, DeadlinePassed(), LATE) == (after, Action.NOTHING)  # an outdated timer
        again, action = advance(after, DeadlinePassed(), LATE + pause(3))
        assert again.progress is not None
        assert (action, again.progress.pausing) == (TABLE[step].again, False)


def test_a_bad_file_is_downloaded_again_with_growing_pauses() -> None:
    record, now, pauses = advance(IDLE, Offered(offer(TARGET)), NOW).record, NOW, []
    for _ in range(12):
        while record.progress is not None and record.progress.step is not UpdateStep.VERIFY:
            record = advance(record, Succeeded(record.progress.step, TARGET.sha256), now).record
        record = advance(record, Failed(UpdateStep.VERIFY, TARGET.sha256, "the hash differs"), now).record
        assert record.progress is not None
        pauses.append(record.progress.deadline - now)
        now = record.progress.deadline
        record = advance(record, DeadlinePassed(), now).record
    assert pauses[:4] == [10, 20, 40, 80]
    assert pauses[-1] == 3600
    assert pause(10_000) == 3600


@pytest.mark.parametrize("step", PREPARING)
def test_a_permanent_failure_rejects_the_release(step: UpdateStep) -> None:
    after, action = advance(at(step), failed(at(step), permanent=True), NOW)
    assert (after.progress, action) == (None, Action.CLEAN)
    assert results(after) == [("1.2.0", "1.3.0", UpdateResult.REJECTED)]
    assert after.is_quarantined(TARGET)
    assert advance(after, Offered(offer(TARGET)), NOW) == (after, Action.NOTHING)


def test_the_window_is_waited_for() -> None:
    waiting = at(UpdateStep.WAIT)
    after = advance(waiting, WindowOpened("no-link"), NOW).record
    assert after.progress is not None
    assert (after.progress.step, after.progress.offline_before) == (UpdateStep.SWITCH, "no-link")
    assert step_after(waiting, DeadlinePassed(), LATE) is UpdateStep.RESOLVE
    assert step_after(at(UpdateStep.VERIFY), WindowOpened()) is UpdateStep.VERIFY


def test_a_hold_keeps_the_window_closed_except_for_a_person() -> None:
    held = advance(at(UpdateStep.WAIT), HoldRequested(NOW + 60), NOW).record
    assert step_after(held, WindowOpened()) is UpdateStep.WAIT
    assert step_after(held, WindowOpened(), NOW + 60) is UpdateStep.SWITCH
    assert step_after(advance(held, HoldRequested(0), NOW).record, WindowOpened()) is UpdateStep.SWITCH
    asked = advance(held, Offered(offer(TARGET, explicit=True)), NOW).record
    assert step_after(asked, WindowOpened()) is UpdateStep.SWITCH


@pytest.mark.parametrize("until", [float("inf"), float("nan")])
def test_a_hold_ends(until: float) -> None:
    with pytest.raises(ValueError, match="must end at a finite time"):
        advance(IDLE, HoldRequested(until), NOW)


def test_a_switch_that_fails_three_times_is_rolled_back() -> None:
    record, now = at(UpdateStep.SWITCH), NOW
    for _ in range(MAX_TRIES - 1):
        record, action = advance(record, failed(record), now)
        assert action is Action.PAUSE
        assert record.progress is not None
        now = record.progress.deadline
        record = advance(record, DeadlinePassed(), now).record
        assert release_to_start(record) == CURRENT
    assert step_after(record, failed(record), now) is UpdateStep.ROLL_BACK
    assert step_after(at(UpdateStep.SWITCH), failed(at(UpdateStep.SWITCH), permanent=True)) is UpdateStep.ROLL_BACK


def test_a_trial_that_works_is_confirmed() -> None:
    assert release_to_start(at(UpdateStep.TRIAL)) == TARGET
    after, action = advance(at(UpdateStep.TRIAL), works(), NOW)
    assert (after.progress, action) == (None, Action.CLEAN)
    assert after.slots == ReleaseSlots(TARGET, CURRENT, FACTORY)
    assert results(after) == [("1.2.0", "1.3.0", UpdateResult.UPDATED)]


@pytest.mark.parametrize(
    ("before", "facts", "confirmed"),
    [
        ("", {}, True),
        ("", {"up": STAY_UP - 1}, False),
        ("", {"served": False}, False),
        ("", {"configured": False}, False),
        ("", {"configured": False, "offline": "no-link"}, False),
        ("no-route", {"configured": False, "offline": "no-link"}, False),
        ("no-link", {"configured": False}, False),
        ("no-link", {"configured": False, "offline": "no-link"}, True),
        ("no-link", {"configured": False, "offline": "no-link", "served": False}, False),
    ],
)
def test_a_trial_needs_all_facts(before: str, facts: dict[str, object], confirmed: bool) -> None:
    after = advance(at(UpdateStep.TRIAL, offline_before=before), works(**facts), NOW).record
    assert (after.progress is None) is confirmed
    assert step_after(at(UpdateStep.TRIAL), works(CURRENT.sha256, **facts)) is UpdateStep.TRIAL  # about another release
    if after.progress is not None:
        late = advance(after, DeadlinePassed(), LATE).record
        assert late.history[-1].reason == f"trial took longer than 30 minutes: {after.progress.error}"


@pytest.mark.parametrize("event", [DeadlinePassed(), failed(at(UpdateStep.TRIAL), permanent=True), RollBackRequested()])
def test_a_trial_that_fails_is_rolled_back(event: Event) -> None:
    after, action = advance(at(UpdateStep.TRIAL), event, LATE)
    assert action is UpdateStep.ROLL_BACK
    assert after.slots == IDLE.slots
    assert release_to_start(after) == CURRENT
    assert after.is_quarantined(TARGET)
    assert results(after) == [("1.2.0", "1.3.0", UpdateResult.ROLLED_BACK)]


def test_three_starts_lead_to_the_older_releases_down_to_the_factory() -> None:
    record = at(UpdateStep.TRIAL)
    for expected in (TARGET, CURRENT, OLD, FACTORY):
        assert release_to_start(record) == expected
        for _ in range(MAX_TRIES):
            record, action = advance(record, Started(expected.sha256), NOW)
            assert action is Action.NOTHING
        record, action = advance(record, Started(expected.sha256), NOW)
        if expected != FACTORY:
            assert action is UpdateStep.ROLL_BACK
            record = advance(record, Succeeded(UpdateStep.ROLL_BACK, subject(record).sha256), NOW).record
    assert (record.progress, action) == (None, Action.CLEAN)
    assert record.slots == ReleaseSlots(FACTORY, None, FACTORY)
    assert results(record) == [
        ("1.2.0", "1.3.0", UpdateResult.ROLLED_BACK),
        ("1.2.0", "1.1.0", UpdateResult.ROLLED_BACK),
        ("1.1.0", "1.0.0", UpdateResult.ROLLED_BACK),
    ]
    assert [entry.version for entry in record.quarantine] == ["1.3.0"]


def test_a_roll_back_whose_file_is_lost_takes_the_next_release() -> None:
    record = at(UpdateStep.ROLL_BACK)
    record = advance(record, failed(record, permanent=True), NOW).record
    assert (release_to_start(record), subject(record)) == (OLD, OLD)
    record = advance(record, failed(record, permanent=True), NOW).record
    assert release_to_start(record) == FACTORY
    after, action = advance(record, failed(record, permanent=True), NOW)  # nothing is left: retry
    assert (release_to_start(after), action) == (FACTORY, Action.PAUSE)


def test_a_recovered_release_needs_no_network() -> None:
    record = at(UpdateStep.RECOVER)
    assert step_after(record, works(CURRENT.sha256, configured=False)) is None
    assert step_after(record, works(CURRENT.sha256, served=False)) is UpdateStep.RECOVER
    assert step_after(record, failed(record)) is UpdateStep.RECOVER
    assert step_after(record, DeadlinePassed(), LATE) is None
    assert step_after(at(UpdateStep.RECOVER, following=offer(NEWER)), DeadlinePassed(), LATE) is UpdateStep.RESOLVE


@pytest.mark.parametrize("step", [*PREPARING, UpdateStep.WAIT])
@pytest.mark.parametrize(("wish", "after"), [(offer(NEWER), UpdateStep.RESOLVE), (offer(CURRENT), None), (None, None)])
def test_another_offer_replaces_a_preparation_at_once(step: UpdateStep, wish: object, after: UpdateStep | None) -> None:
    event = Offered(wish)  # type: ignore[arg-type]
    assert step_after(at(step, pausing=True), event) is after
    record = advance(at(step), event, NOW).record
    assert results(record) == [("1.2.0", "1.3.0", UpdateResult.SUPERSEDED)]
    assert record.progress is None or record.progress.target == NEWER
    assert not record.quarantine


@pytest.mark.parametrize("step", [UpdateStep.SWITCH, UpdateStep.TRIAL])
def test_another_offer_rolls_a_trial_back_first(step: UpdateStep) -> None:
    record = advance(at(step), Offered(offer(NEWER)), NOW).record
    assert not record.quarantine
    assert results(record) == [("1.2.0", "1.3.0", UpdateResult.SUPERSEDED)]
    assert release_to_start(record) == CURRENT
    assert step_after(record, Offered(offer(NEWER))) is UpdateStep.ROLL_BACK
    record = advance(record, Succeeded(UpdateStep.ROLL_BACK, CURRENT.sha256), NOW).record
    record, action = advance(record, works(CURRENT.sha256), NOW)
    assert action is UpdateStep.RESOLVE
    assert record.progress is not None
    assert record.progress.target == NEWER


def test_only_the_last_offer_follows_a_roll_back() -> None:
    record = at(UpdateStep.RECOVER, following=offer(NEWER, explicit=True))
    again = advance(record, Offered(offer(NEWER)), NOW).record
    assert again == record  # the person's wish is kept
    record = advance(record, Offered(None), NOW).record
    assert record.progress is not None
    assert record.progress.following is None
    assert results(record) == [("1.2.0", "1.4.0", UpdateResult.SUPERSEDED)]


def test_a_release_that_was_just_rolled_back_does_not_follow() -> None:
    """The offer may have been decided about before the release was in quarantine."""
    record = advance(at(UpdateStep.TRIAL), failed(at(UpdateStep.TRIAL), permanent=True), NOW).record
    assert record.is_quarantined(TARGET)
    record = advance(record, Offered(offer(TARGET)), NOW).record
    assert record.progress is not None
    assert record.progress.following is None
    record = advance(record, Offered(None), NOW).record
    assert [result for *_, result in results(record)] == [UpdateResult.ROLLED_BACK]
    record = advance(record, Offered(offer(TARGET, explicit=True)), NOW).record
    assert record.progress is not None
    assert record.progress.following == offer(TARGET, explicit=True)


@pytest.mark.parametrize("step", UpdateStep)
def test_the_same_offer_changes_nothing(step: UpdateStep) -> None:
    if step not in (UpdateStep.ROLL_BACK, UpdateStep.RECOVER):
        assert advance(at(step), Offered(offer(TARGET)), NOW) == (at(step), Action.NOTHING)


def test_the_current_release_is_not_installed_again() -> None:
    assert advance(IDLE, Offered(offer(CURRENT, explicit=True)), NOW) == (IDLE, Action.NOTHING)
    assert advance(IDLE, Offered(None), NOW) == (IDLE, Action.NOTHING)


@pytest.mark.parametrize("wish", [OLD, FACTORY, release("1.2.0", "another build"), release("1.3.0", "another build")])
def test_older_versions_and_other_builds_are_releases_like_any_other(wish: object) -> None:
    assert step_after(IN_QUARANTINE, Offered(offer(wish))) is UpdateStep.RESOLVE  # type: ignore[arg-type]


def test_a_quarantined_release_needs_a_person() -> None:
    assert advance(IN_QUARANTINE, Offered(offer(TARGET)), NOW) == (IN_QUARANTINE, Action.NOTHING)
    record = advance(IN_QUARANTINE, Offered(offer(TARGET, explicit=True)), NOW).record
    assert record.progress is not None
    assert record.is_quarantined(TARGET)  # until it is confirmed
    trial = replace(record, progress=replace(record.progress, step=UpdateStep.TRIAL))
    assert not advance(trial, works(), NOW).record.quarantine


def test_a_person_rolls_back() -> None:
    after, action = advance(IDLE, RollBackRequested(), NOW)
    assert action is UpdateStep.ROLL_BACK
    assert after.slots == ReleaseSlots(OLD, None, FACTORY)
    assert after.is_quarantined(CURRENT)
    assert results(after) == [("1.2.0", "1.1.0", UpdateResult.ROLLED_BACK)]
    assert advance(after, RollBackRequested(), NOW) == (after, Action.NOTHING)
    prepared = advance(at(UpdateStep.VERIFY), RollBackRequested(), NOW).record
    assert [result for *_, result in results(prepared)] == [UpdateResult.SUPERSEDED, UpdateResult.ROLLED_BACK]
    alone = replace(IDLE, slots=ReleaseSlots(FACTORY, None, FACTORY))
    assert advance(alone, RollBackRequested(), NOW) == (alone, Action.NOTHING)


@pytest.mark.parametrize(
    "event",
    [
        Succeeded(UpdateStep.VERIFY, NEWER.sha256),
        Succeeded(UpdateStep.DOWNLOAD, TARGET.sha256),
        Failed(UpdateStep.VERIFY, NEWER.sha256, "late", True),
        Started(TARGET.sha256),
        works(),
        WindowOpened(),
        DeadlinePassed(),
    ],
)
def test_an_event_about_something_else_changes_nothing(event: Event) -> None:
    for record in (at(UpdateStep.VERIFY), IDLE):
        assert advance(record, event, NOW) == (record, Action.NOTHING)
