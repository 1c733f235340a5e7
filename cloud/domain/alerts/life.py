"""The life of an alert: one rule at one place, from ok to resolved, as a table. Pure.

`step` is the only function that changes a state. It is total: every pair of a phase and a signal is a row of TABLE.
An observation or a deadline becomes a signal in `step`; what follows from a signal is in the table.

Times of observations are those at which a value was measured, and `now` is the clock of the cloud. A time in the future
counts as now, so that a clock that was wrong delays nothing once it is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, TypeAlias

Value: TypeAlias = float | str | bool | None
NEVER: Final = timedelta(0)


class Phase(Enum):
    """Where an alert is in its life. RESOLVED is OK again, after it has fired."""

    OK = "ok"
    PENDING = "pending"
    FIRING = "firing"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


OPEN: Final = frozenset({Phase.FIRING, Phase.ACKNOWLEDGED})
"""Phases of alerts that people have to see."""


class Level(Enum):
    """What an observation says: the condition holds, does not hold, or lies between threshold and recovery."""

    GOOD = "good"
    BETWEEN = "between"
    BAD = "bad"


class Missing(Enum):
    """What happens when there are no data for a time."""

    KEEP = "keep"
    RESOLVE = "resolve"
    ALERT = "alert"


class Signal(Enum):
    """What can happen to an alert."""

    BAD = "bad"
    BETWEEN = "between"
    GOOD = "good"
    LASTED = "lasted"  # the condition has held for the for-duration
    CALMED = "calmed"  # it has not held for the recovery duration
    MISSING = "missing"  # no data, and the rule alerts then
    FORGOTTEN = "forgotten"  # no data, and the rule resolves then
    ACKNOWLEDGE = "acknowledge"
    CLOSE = "close"  # the rule or the machine is gone, or is another one


class Effect(Enum):
    """The effect of a row of the table, apart from the change of phase."""

    NOTHING = "nothing"
    BEGIN = "begin"  # the condition begins to hold
    FORGET = "forget"  # it has not held long enough
    FIRE = "fire"
    CALM = "calm"  # the recovery begins
    WORSEN = "worsen"  # the recovery is interrupted
    RESOLVE = "resolve"
    ACKNOWLEDGE = "acknowledge"
    CLOSE = "close"


_OK, _PENDING, _FIRING, _ACKNOWLEDGED, _RESOLVED = Phase
_QUIET: Final[Mapping[Signal, tuple[Phase | None, Effect]]] = {
    Signal.BAD: (_PENDING, Effect.BEGIN),
    Signal.BETWEEN: (None, Effect.NOTHING),
    Signal.GOOD: (None, Effect.NOTHING),
    Signal.LASTED: (None, Effect.NOTHING),
    Signal.CALMED: (None, Effect.NOTHING),
    Signal.MISSING: (_FIRING, Effect.FIRE),
    Signal.FORGOTTEN: (None, Effect.NOTHING),
    Signal.ACKNOWLEDGE: (None, Effect.NOTHING),
    Signal.CLOSE: (_OK, Effect.FORGET),
}
_LOUD: Final[Mapping[Signal, tuple[Phase | None, Effect]]] = {
    Signal.BAD: (None, Effect.WORSEN),
    Signal.BETWEEN: (None, Effect.WORSEN),
    Signal.GOOD: (None, Effect.CALM),
    Signal.LASTED: (None, Effect.NOTHING),
    Signal.CALMED: (_RESOLVED, Effect.RESOLVE),
    Signal.MISSING: (None, Effect.NOTHING),
    Signal.FORGOTTEN: (_RESOLVED, Effect.RESOLVE),
    Signal.CLOSE: (_RESOLVED, Effect.CLOSE),
}

TABLE: Final[Mapping[Phase, Mapping[Signal, tuple[Phase | None, Effect]]]] = {
    _OK: _QUIET,
    _RESOLVED: _QUIET,
    _PENDING: {
        Signal.BAD: (None, Effect.NOTHING),
        Signal.BETWEEN: (_OK, Effect.FORGET),
        Signal.GOOD: (_OK, Effect.FORGET),
        Signal.LASTED: (_FIRING, Effect.FIRE),
        Signal.CALMED: (None, Effect.NOTHING),
        Signal.MISSING: (_FIRING, Effect.FIRE),
        Signal.FORGOTTEN: (_OK, Effect.FORGET),
        Signal.ACKNOWLEDGE: (None, Effect.NOTHING),
        Signal.CLOSE: (_OK, Effect.FORGET),
    },
    _FIRING: {**_LOUD, Signal.ACKNOWLEDGE: (_ACKNOWLEDGED, Effect.ACKNOWLEDGE)},
    _ACKNOWLEDGED: {**_LOUD, Signal.ACKNOWLEDGE: (None, Effect.NOTHING)},
}
"""The next phase (None: the same) and the effect, for each phase and signal."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The durations of a rule."""

    hold: timedelta = NEVER  # the condition has to hold so long
    calm: timedelta = NEVER  # it must not hold for so long
    repeat: timedelta = NEVER  # between reminders; 0: none
    missing: Missing = Missing.KEEP
    patience: timedelta = NEVER  # without data for so long, they are missing; 0: a value holds until the next one
    once: bool = False  # nothing recovers by itself: acknowledging resolves


@dataclass(frozen=True, slots=True)
class State:
    """The state of an alert. `since` is when the condition began to hold, `changed` when the phase began."""

    phase: Phase = Phase.OK
    since: datetime | None = None
    changed: datetime | None = None
    level: Level | None = None  # of the newest observation
    value: Value = None
    seen: datetime | None = None  # time of the newest observation
    heard: datetime | None = None  # when it arrived
    calm: datetime | None = None  # when the recovery began
    absent: bool = False  # it fires because there are no data
    silenced: datetime | None = None  # end of its own silence
    covered: datetime | None = None  # end of the silence of its rule or its machine
    announced: bool = False  # people were notified that it fires
    reminded: datetime | None = None  # last notification, or when it fired
    by: str = ""  # who has acknowledged it


# ---- events


@dataclass(frozen=True, slots=True)
class Observed:
    """A value, measured at `at`."""

    at: datetime
    level: Level
    value: Value = None


@dataclass(frozen=True, slots=True)
class Tick:
    """A deadline may have come. `up` is since when the cloud could receive data; None: always."""

    up: datetime | None = None


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A person takes care of it."""

    by: str = ""


@dataclass(frozen=True, slots=True)
class Silenced:
    """A person wants no notifications before `until`; None ends the silence."""

    until: datetime | None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Closed:
    """The rule or the machine changed, so that the alert has no meaning any more."""

    reason: str


Event: TypeAlias = Observed | Tick | Acknowledged | Silenced | Closed


class Happened(Enum):
    """What the history records, and of what people are notified."""

    FIRED = "fired"
    REMINDED = "reminded"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"
    CLOSED = "closed"
    SILENCED = "silenced"
    UNSILENCED = "unsilenced"


@dataclass(frozen=True, slots=True)
class Output:
    """Something that happened, for the history (not REMINDED), and whether people are notified."""

    happened: Happened
    at: datetime
    notify: bool = False
    detail: str = ""  # why, or who
    value: Value = None  # the newest one at that time; None if there are no data


def step(
    timing: Timing,
    state: State,
    event: Event,
    now: datetime,
    *,
    muted: bool = False,
    covered: datetime | None = None,
) -> tuple[State, tuple[Output, ...]]:
    """Return the next state, and what happened.

    `muted`: notifications made now are dropped. `covered`: end of the silence of its rule or its machine. An
    observation that is older than the newest one changes nothing.
    """
    moved = _Step(timing, _not_ahead(state, now), now, muted=muted)
    moved.cover(covered)
    return moved.run(event)


def due(timing: Timing, state: State) -> datetime | None:
    """Return when the next Tick has to come; None if nothing but events changes the state."""
    loud = state.phase in OPEN
    deadlines = [state.silenced]
    if (lasts := _lasts(timing, state)) is not None:
        deadlines.append(lasts)
    if loud and state.calm is not None:
        deadlines.append(state.calm + timing.calm)
    if state.phase is Phase.FIRING:
        deadlines.append(state.covered)
    if state.phase is Phase.FIRING and timing.repeat and state.reminded is not None and not _is_silent(state):
        deadlines.append(state.reminded + timing.repeat)
    if _awaits(timing, state) and state.heard is not None:
        deadlines.append(state.heard + timing.patience)
    return min((moment for moment in deadlines if moment is not None), default=None)


def is_silent(state: State, now: datetime) -> bool:
    """Return whether a silence covers an alert now."""
    return any(end is not None and end > now for end in (state.silenced, state.covered))


def _is_silent(state: State) -> bool:
    return state.silenced is not None or state.covered is not None


def _lasts(timing: Timing, state: State) -> datetime | None:
    """Return when the condition will have held long enough; None if the newest value is too old to last so long."""
    if state.phase is not Phase.PENDING or state.since is None or state.level is not Level.BAD:
        return None
    moment, patience = state.since + timing.hold, timing.patience
    return None if patience and state.seen is not None and moment > state.seen + patience else moment


def _awaits(timing: Timing, state: State) -> bool:
    """Return whether missing data would change the state."""
    if not timing.patience or state.absent:
        return False
    if timing.missing is Missing.ALERT:
        return state.phase not in OPEN
    return timing.missing is Missing.RESOLVE and state.phase not in (Phase.OK, Phase.RESOLVED)


def _not_ahead(state: State, now: datetime) -> State:
    """Return a state without times in the future, which a wrong clock has left."""

    def capped(moment: datetime | None) -> datetime | None:
        return None if moment is None else min(moment, now)

    names = ("since", "changed", "heard", "calm", "reminded")
    changes = {name: capped(getattr(state, name)) for name in names}
    seen = None if state.seen is None or state.seen > now else state.seen  # the next observation must not seem late
    return replace(state, seen=seen, **changes)  # type: ignore[arg-type]


class _Step:
    def __init__(self, timing: Timing, state: State, now: datetime, *, muted: bool) -> None:
        self.timing = timing
        self.state = state
        self.now = now
        self.muted = muted
        self.outputs: list[Output] = []

    def run(self, event: Event) -> tuple[State, tuple[Output, ...]]:
        if isinstance(event, Observed):
            self._observe(event)
        elif isinstance(event, Tick):
            self._advance(self.now)
            self._miss(event.up)
            self._end_silence()
            self._remind()
        elif isinstance(event, Acknowledged):
            self._acknowledge(event.by)
        elif isinstance(event, Silenced):
            self._silence(event)
        else:
            self._signal(Signal.CLOSE, self.now, event.reason)
            self.state = State(silenced=self.state.silenced, phase=self.state.phase, changed=self.state.changed)
        return self.state, tuple(self.outputs)

    def cover(self, until: datetime | None) -> None:
        """Note the silence of the rule or the machine, and notify if it has ended and nothing was sent."""
        ended = self.state.covered is not None and until is None
        self.state = replace(self.state, covered=until)
        if ended and self.state.silenced is None and self.state.phase is Phase.FIRING and not self.state.announced:
            self._tell(Happened.REMINDED, self.now)

    # ---- observations and deadlines

    def _observe(self, event: Observed) -> None:
        at, seen, patience = min(event.at, self.now), self.state.seen, self.timing.patience
        if seen is not None and at < seen:
            return
        self._advance(at)
        if patience and seen is not None and at - seen > patience and self.state.phase is Phase.PENDING:
            self._signal(Signal.GOOD, at)  # the values between are unknown: the duration restarts
        heard = self.now
        self.state = replace(self.state, level=event.level, value=event.value, seen=at, heard=heard, absent=False)
        self._signal(Signal[event.level.name], at)
        self._advance(at)

    def _advance(self, to: datetime) -> None:
        """Let the deadlines up to a time come that depend on observations."""
        lasts = _lasts(self.timing, self.state)
        if lasts is not None and lasts <= to:
            self._signal(Signal.LASTED, lasts)
        calm = self.state.calm
        if self.state.phase in OPEN and calm is not None and calm + self.timing.calm <= to:
            self._signal(Signal.CALMED, calm + self.timing.calm)

    def _miss(self, up: datetime | None) -> None:
        if not _awaits(self.timing, self.state) or self.state.heard is None:
            return
        heard = self.state.heard if up is None else max(self.state.heard, min(up, self.now))
        self.state = replace(self.state, heard=heard)
        if heard + self.timing.patience > self.now:
            return
        alerts = self.timing.missing is Missing.ALERT
        if alerts:
            self.state = replace(self.state, absent=True)
        self._signal(Signal.MISSING if alerts else Signal.FORGOTTEN, self.now, "no data")

    # ---- people

    def _acknowledge(self, by: str) -> None:
        self._signal(Signal.ACKNOWLEDGE, self.now, by)
        if self.timing.once and self.state.phase is Phase.ACKNOWLEDGED:
            self.state = replace(self.state, announced=False)  # the person knows
            self._signal(Signal.CALMED, self.now)

    def _silence(self, event: Silenced) -> None:
        if event.until is not None and event.until > self.now:
            self.state = replace(self.state, silenced=event.until)
            self._put(Happened.SILENCED, self.now, detail=event.by)
        elif self.state.silenced is not None:
            self._unsilence(event.by)

    def _end_silence(self) -> None:
        if self.state.silenced is not None and self.state.silenced <= self.now:
            self._unsilence("")

    def _unsilence(self, by: str) -> None:
        self.state = replace(self.state, silenced=None)
        self._put(Happened.UNSILENCED, self.now, detail=by)
        if self.state.phase is Phase.FIRING and not self.state.announced:
            self._tell(Happened.REMINDED, self.now)

    def _remind(self) -> None:
        state, repeat = self.state, self.timing.repeat
        if state.phase is not Phase.FIRING or not repeat or state.reminded is None or _is_silent(state):
            return
        if state.reminded + repeat <= self.now:
            self._tell(Happened.REMINDED, self.now)

    # ---- the table

    def _signal(self, signal: Signal, at: datetime, detail: str = "") -> None:
        phase, effect = TABLE[self.state.phase][signal]
        at = max(at, self.state.changed or at)
        if phase is not None:
            self.state = replace(self.state, phase=phase, changed=at)
        if effect is Effect.BEGIN:
            self.state = replace(self.state, since=at, calm=None, by="", announced=False, reminded=None)
        elif effect is Effect.FORGET:
            self.state = replace(self.state, since=None)
        elif effect is Effect.FIRE:
            self.state = replace(self.state, calm=None, announced=False, by="", since=self._since(signal, at))
            self._tell(Happened.FIRED, at, detail)
        elif effect is Effect.CALM:
            self.state = self.state if self.state.calm is not None else replace(self.state, calm=at)
        elif effect is Effect.WORSEN:
            self.state = replace(self.state, calm=None)
        elif effect is Effect.ACKNOWLEDGE:
            self.state = replace(self.state, by=detail)
            self._put(Happened.ACKNOWLEDGED, at, detail=detail)
        elif effect is Effect.RESOLVE:
            notify = self.state.announced and not self.muted and not _is_silent(self.state)
            self._put(Happened.RESOLVED, at, notify=notify, detail=detail)
            self.state = replace(self.state, calm=None, absent=False, announced=False, reminded=None)
        elif effect is Effect.CLOSE:
            self._put(Happened.CLOSED, at, detail=detail)

    def _since(self, signal: Signal, at: datetime) -> datetime:
        return at if signal is Signal.MISSING or self.state.since is None else self.state.since

    def _tell(self, happened: Happened, at: datetime, detail: str = "") -> None:
        """Record that it fires, or still fires, and notify unless it is silenced or muted."""
        notify = not self.muted and not is_silent(self.state, self.now)
        self.state = replace(self.state, reminded=self.now, announced=self.state.announced or notify)
        if happened is not Happened.REMINDED or notify:
            self._put(happened, at, notify=notify, detail=detail)

    def _put(self, happened: Happened, at: datetime, *, notify: bool = False, detail: str = "") -> None:
        value = None if self.state.absent else self.state.value
        self.outputs.append(Output(happened, at, notify, detail, value))
