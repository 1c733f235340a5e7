"""The life of an alert as a table: every situation, every pair of a phase and a signal, and every order of events."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from cloud.domain.alerts.life import (
    OPEN,
    TABLE,
    Acknowledged,
    Event,
    Happened,
    Level,
    Missing,
    Observed,
    Output,
    Phase,
    Signal,
    Silenced,
    State,
    Tick,
    Timing,
    due,
    step,
)
from cloud.domain.alerts.reading import level_of
from cloud.domain.alerts.rule import decoded
from cloud.domain.alerts.wording import STATES
from tests.unit.cloud.domain.alerts.situations import RULE, SITUATIONS, Situation, steps_of

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def at(minute: float) -> datetime:
    return EPOCH + timedelta(minutes=minute)


class Table:
    """One alert, without a store."""

    def __init__(self, situation: Situation) -> None:
        self.rule = decoded({**RULE, **situation.rule})
        self.state = State()
        self.outputs: list[tuple[datetime, Output]] = []
        self.up: datetime | None = at(-100_000)

    def happen(self, event: Event, now: datetime) -> None:
        self.state, outputs = step(self.rule.timing, self.state, event, now)
        self.outputs += [(now, output) for output in outputs]

    def wait(self, start: datetime, end: datetime) -> None:
        """Let the deadlines until a time come."""
        while self.up is not None and (moment := due(self.rule.timing, self.state)) is not None and moment <= end:
            before = self.state
            self.happen(Tick(self.up), max(moment, start))
            if before == self.state:
                break

    def play(self, situation: Situation) -> None:
        now = at(steps_of(situation)[0][0])
        for minute, (word, *rest) in steps_of(situation):
            self.wait(now, at(minute))
            now = at(minute)
            match word:
                case "read":
                    self.read(rest[0], now, at(float(rest[2])) if rest[1:] else now)
                case "upload":
                    for pair in rest:
                        measured, _, value = pair.partition(":")
                        self.read(value, now, at(float(measured)))
                case "ack":
                    self.happen(Acknowledged("ann"), now)
                case "silence":
                    self.happen(Silenced(now + timedelta(minutes=float(rest[0])), "ann"), now)
                case "unsilence":
                    self.happen(Silenced(None, "ann"), now)
                case "tick":
                    self.happen(Tick(self.up), now)
                case "clock":
                    now += timedelta(minutes=float(rest[0]))
                case "down":
                    self.up = None
                case "up":
                    self.up = now
            self.wait(now, now)

    def read(self, value: str, now: datetime, measured: datetime) -> None:
        condition = self.rule.condition
        assert condition is not None
        level = level_of(condition, float(value))
        assert level is not None
        self.happen(Observed(measured, level, float(value)), now)

    def events(self) -> str:
        shown = [
            (output.at, output.happened.value) for _, output in self.outputs if output.happened is not Happened.REMINDED
        ]
        return " | ".join(f"{minute_of(moment)} {word}" for moment, word in shown)

    def messages(self) -> str:
        shown = [(now, STATES[output.happened.value]) for now, output in self.outputs if output.notify]
        return " | ".join(f"{minute_of(moment)} {word}" for moment, word in shown)


def minute_of(moment: datetime) -> int:
    return round((moment - EPOCH) / timedelta(minutes=1))


@pytest.mark.parametrize("situation", [each for each in SITUATIONS if each.pure], ids=lambda each: each.name)
def test_situation_in_the_table(situation: Situation) -> None:
    table = Table(situation)
    table.play(situation)
    assert (table.events(), table.messages()) == (situation.events, situation.messages)


def test_there_are_enough_situations() -> None:
    names = [situation.name for situation in SITUATIONS]
    assert len(names) == len(set(names)) >= 40


def test_the_table_is_total() -> None:
    assert {phase: set(row) for phase, row in TABLE.items()} == {phase: set(Signal) for phase in Phase}


def test_only_resolving_leaves_an_open_phase() -> None:
    for phase in OPEN:
        left = {signal for signal, (target, _) in TABLE[phase].items() if target is not None and target not in OPEN}
        assert left == {Signal.CALMED, Signal.FORGOTTEN, Signal.CLOSE}


@pytest.mark.parametrize("seed", range(200))
def test_fired_and_ended_alternate_in_any_order_of_events(seed: int) -> None:
    """Whatever happens in whatever order, each firing ends at most once, and deadlines always lead somewhere."""
    chance = random.Random(seed)
    timing = Timing(
        hold=timedelta(minutes=chance.choice((0, 5))),
        calm=timedelta(minutes=chance.choice((0, 7))),
        repeat=timedelta(minutes=chance.choice((0, 30))),
        missing=chance.choice(list(Missing)),
        patience=timedelta(minutes=chance.choice((0, 20))),
        once=chance.random() < 0.2,
    )
    state, now, fires = State(), EPOCH, False
    for _ in range(200):
        now += timedelta(minutes=chance.choice((-3, 0, 1, 1, 4, 11)))
        event = chance.choice(
            (
                Observed(now - timedelta(minutes=chance.choice((-9, 0, 0, 0, 6))), chance.choice(list(Level)), 1.0),
                Tick(),
                Acknowledged("ann"),
                Silenced(now + timedelta(minutes=chance.choice((-1, 9)))),
            )
        )
        state, outputs = step(timing, state, event, now)
        for output in outputs:
            if output.happened is Happened.FIRED:
                assert not fires
                fires = True
            elif output.happened is Happened.RESOLVED:
                assert fires
                fires = False
        assert fires is (state.phase in OPEN)
        settled = now + timedelta(days=1)
        ended, _ = step(timing, state, Tick(), settled)
        moment = due(timing, ended)
        assert moment is None or moment > settled
