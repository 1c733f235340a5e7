"""Random events and power losses at any moment: a program that can run is always there, and every offer ends."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

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
from agent.update.record import (
    Release,
    ReleaseOffer,
    ReleaseSlots,
    UpdateOutcome,
    UpdateRecord,
    UpdateStep,
    decode,
    encode,
)
from agent.update.steps import Action, advance, release_to_start, subject
from tests.unit.agent.update.make import FACTORY, NOW, release

RELEASES = [release(f"2.{number}.0") for number in range(4)] + [release("2.0.0", "another build"), FACTORY]
LOST = st.sampled_from(["no", "no", "no", "before it was saved", "after it was saved"])
MOST_EVENTS_TO_IDLE = 60


class Updates(RuleBasedStateMachine):
    """A caller with a simulated disk. `disk` has the files in slots, `verified` the hashes that were verified there."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.record = UpdateRecord("machine-server", ReleaseSlots(FACTORY, None, FACTORY))
        self.stored = encode(self.record)
        self.downloaded: set[str] = set()
        self.verified = {FACTORY.sha256}
        self.disk = {FACTORY.sha256}
        self.doing: UpdateStep | Action = Action.NOTHING
        self.offers: list[Release] = []
        self.outcomes: list[UpdateOutcome] = []

    # ---- the caller

    def deliver(self, event: Event, lost: str = "no") -> None:
        if lost == "before it was saved":
            self.lose_power()
            return
        record, action = advance(self.record, event, self.now)
        self.note(record)
        if isinstance(event, Offered) and event.offer is not None:
            self.offers.append(event.offer.release)
        self.record, self.stored = record, encode(record)
        if lost == "after it was saved":
            self.lose_power()
        elif action is not Action.NOTHING:
            self.begin(action)

    def note(self, record: UpdateRecord) -> None:
        """Collect the new outcomes, of which the record keeps only the last."""
        before, after = self.record.history, record.history
        new = next(count for count in range(4) if (*before, *after[len(after) - count :])[-20:] == after)
        self.outcomes += after[len(after) - new :]

    def begin(self, action: UpdateStep | Action) -> None:
        self.doing = action
        if action is Action.CLEAN:
            slots = self.record.slots
            kept = {slot.sha256 for slot in (slots.current, slots.previous, slots.factory) if slot}
            assert self.record.progress is None
            self.downloaded.clear()
            self.disk &= kept
            self.verified &= kept

    def lose_power(self) -> None:
        self.record = decode(self.stored)
        self.doing = Action.NOTHING
        self.deliver(Resumed())

    def carry_out(self) -> None:
        """Do what the step asks for, on the disk."""
        sha256 = subject(self.record).sha256
        match self.doing:
            case UpdateStep.DOWNLOAD:
                self.downloaded.add(sha256)
            case UpdateStep.VERIFY:
                assert sha256 in self.downloaded
                self.verified.add(sha256)
            case UpdateStep.STAGE:
                assert sha256 in self.verified
                self.disk.add(sha256)
            case UpdateStep.SWITCH | UpdateStep.TRIAL | UpdateStep.ROLL_BACK | UpdateStep.RECOVER:
                assert sha256 in self.disk & self.verified

    # ---- events

    @rule(wish=st.sampled_from([None, *RELEASES]), explicit=st.booleans(), lost=LOST)
    def offer(self, wish: Release | None, explicit: bool, lost: str) -> None:
        self.deliver(Offered(ReleaseOffer(wish, explicit) if wish else None), lost)

    @precondition(lambda self: isinstance(self.doing, UpdateStep))
    @rule(lost=LOST)
    def succeed(self, lost: str) -> None:
        assert isinstance(self.doing, UpdateStep)
        self.carry_out()
        self.deliver(Succeeded(self.doing, subject(self.record).sha256), lost)

    @precondition(lambda self: isinstance(self.doing, UpdateStep))
    @rule(permanent=st.booleans(), done=st.booleans(), lost=LOST)
    def fail(self, permanent: bool, done: bool, lost: str) -> None:
        assert isinstance(self.doing, UpdateStep)
        if done:
            self.carry_out()
        self.deliver(Failed(self.doing, subject(self.record).sha256, "a reason", permanent), lost)

    @rule(step=st.sampled_from(UpdateStep), about=st.sampled_from(RELEASES), event=st.sampled_from([Succeeded, Failed]))
    def outdated(self, step: UpdateStep, about: Release, event: type[Succeeded] | type[Failed]) -> None:
        progress = self.record.progress
        if progress is None or (progress.step, subject(self.record).sha256) != (step, about.sha256):
            before = self.record
            outdated = Succeeded(step, about.sha256) if event is Succeeded else Failed(step, about.sha256, "late", True)
            assert advance(before, outdated, self.now) == (before, Action.NOTHING)

    @rule(seconds=st.floats(0, 10_000_000), lost=LOST)
    def time_passes(self, seconds: float, lost: str) -> None:
        self.now += seconds
        self.deliver(DeadlinePassed(), lost)

    @rule(offline=st.sampled_from(["", "no-link"]), lost=LOST)
    def window(self, offline: str, lost: str) -> None:
        self.deliver(WindowOpened(offline), lost)

    @rule(lost=LOST)
    def start(self, lost: str) -> None:
        self.deliver(Started(release_to_start(self.record).sha256), lost)

    @rule(
        up=st.sampled_from([0.0, 1000.0]),
        served=st.booleans(),
        configured=st.booleans(),
        offline=st.sampled_from(["", "no-link"]),
        lost=LOST,
    )
    def observe(self, up: float, served: bool, configured: bool, offline: str, lost: str) -> None:
        self.deliver(ProgramObserved(release_to_start(self.record).sha256, up, served, configured, offline), lost)

    @rule(lost=LOST)
    def roll_back(self, lost: str) -> None:
        self.deliver(RollBackRequested(), lost)

    @rule(seconds=st.floats(0, 100_000), lost=LOST)
    def hold(self, seconds: float, lost: str) -> None:
        self.deliver(HoldRequested(self.now + seconds), lost)

    @rule()
    def cut(self) -> None:
        self.lose_power()

    @rule(count=st.integers(1, 8))
    def proceed(self, count: int) -> None:
        """Deliver the events of an update that succeeds."""
        for _ in range(count):
            progress = self.record.progress
            if progress is None:
                return
            sha256 = subject(self.record).sha256
            if progress.pausing:
                self.now = max(self.now, progress.deadline)
                self.deliver(DeadlinePassed())
            elif progress.step is UpdateStep.WAIT:
                self.now = max(self.now, self.record.hold_until)
                self.deliver(WindowOpened())
            elif progress.step in (UpdateStep.TRIAL, UpdateStep.RECOVER):
                self.deliver(ProgramObserved(sha256, 1000.0, True, True))
            else:
                self.doing = progress.step
                self.carry_out()
                self.deliver(Succeeded(progress.step, sha256))
            self.a_release_can_run()

    # ---- what must hold

    @invariant()
    def a_release_can_run(self) -> None:
        record = self.record
        runs = release_to_start(record)
        assert runs.sha256 in self.disk & self.verified
        assert record.slots.current.sha256 in self.disk & self.verified
        assert record.slots.previous is None or not record.is_quarantined(record.slots.previous)
        explicit = record.progress is not None and record.progress.explicit
        assert not record.is_quarantined(runs) or explicit or runs == FACTORY
        if record.progress is not None and record.progress.step not in (UpdateStep.ROLL_BACK, UpdateStep.RECOVER):
            assert explicit or not record.is_quarantined(record.progress.target)

    @invariant()
    def what_is_stored_is_read(self) -> None:
        assert decode(self.stored) == self.record

    def teardown(self) -> None:
        """From any state, success leads to idle; then every offer has an outcome."""
        self.proceed(MOST_EVENTS_TO_IDLE)
        assert self.record.progress is None
        ended = {outcome.sha256 for outcome in self.outcomes} | {FACTORY.sha256}
        ended |= {entry.sha256 for entry in self.record.quarantine}
        assert {offered.sha256 for offered in self.offers} <= ended


TestUpdates = Updates.TestCase
