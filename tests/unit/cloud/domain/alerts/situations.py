"""The table of situations: what happens to an alert, minute by minute, in the table and in the store.

A rule alerts if `celsius` is above 8 for 5 minutes. A step is a minute and what happens then; the deadlines before it
come first, as in a running cloud, unless the cloud is down. `events` is the history, `messages` what people get, each
with its minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

CONDITION: Final = {"path": "celsius", "comparison": "gt", "threshold": 8.0}
RULE: Final[Mapping[str, Any]] = {
    "name": "warm",
    "kind": "reading",
    "condition": CONDITION,
    "for_seconds": 300,
    "group_seconds": 0,
    "targets": [{"type": "webhook", "value": "https://receiver.test/"}],
}
NIGHT: Final = {"zone": "Europe/Berlin", "start": "22:00", "end": "07:00"}


@dataclass(frozen=True)
class Situation:
    name: str
    steps: str
    events: str = ""
    messages: str = ""
    rule: Mapping[str, Any] = field(default_factory=dict)
    start: str = "2026-01-01T00:00:00+00:00"
    pure: bool = True  # nothing in it is beyond the table: groups, delays, other machines


def steps_of(situation: Situation) -> list[tuple[float, list[str]]]:
    """Return the steps, such as `3 read 9` or `3 read 9 at 1`, separated by commas."""
    words = [step.split() for step in situation.steps.split(",")]
    return [(float(first), rest) for first, *rest in words]


HYSTERESIS: Final = {"condition": {**CONDITION, "recovery": 5.0}}
ABSENT: Final = {"no_data": "alert", "no_data_seconds": 600}
FORGIVING: Final = {"no_data": "resolve", "no_data_seconds": 600}
AT_ONCE: Final = {"for_seconds": 0}
SHORT: Final = {"no_data_seconds": 120}

SITUATIONS: Final = (
    # ---- the usual life
    Situation("good readings do nothing", "0 read 4, 1 read 5, 9 read 8"),
    Situation("a short excess is forgotten", "0 read 9, 4 read 8, 20 end"),
    Situation("an excess that lasts fires", "0 read 9, 3 read 9, 6 read 9", "5 fired", "5 firing"),
    Situation(
        "the value holds until the next one", "0 read 9, 8 read 4", "5 fired | 8 resolved", "5 firing | 8 resolved"
    ),
    Situation(
        "without a duration it fires at once",
        "1 read 9, 2 read 4",
        "1 fired | 2 resolved",
        "1 firing | 2 resolved",
        AT_ONCE,
    ),
    Situation("the threshold itself is good for gt", "0 read 8, 9 end", "", "", AT_ONCE),
    Situation(
        "it fires again after it was resolved",
        "0 read 9, 1 read 4, 2 read 9, 3 read 4",
        "0 fired | 1 resolved | 2 fired | 3 resolved",
        "0 firing | 1 resolved | 2 firing | 3 resolved",
        AT_ONCE,
    ),
    # ---- hysteresis and flapping
    Situation(
        "between the thresholds it keeps firing",
        "0 read 9, 1 read 6, 2 read 7, 3 read 5",
        "0 fired | 3 resolved",
        "0 firing | 3 resolved",
        {**AT_ONCE, **HYSTERESIS},
    ),
    Situation("between the thresholds nothing begins", "0 read 6, 5 read 7, 20 end", "", "", HYSTERESIS),
    Situation("between the thresholds a pending alert is forgotten", "0 read 9, 3 read 6, 20 end", "", "", HYSTERESIS),
    Situation("flapping below the duration never fires", "0 read 9, 2 read 4, 4 read 9, 6 read 4, 8 read 9, 10 read 4"),
    Situation(
        "flapping above the recovery duration resolves once",
        "0 read 9, 1 read 4, 2 read 9, 3 read 4, 30 end",
        "0 fired | 13 resolved",
        "0 firing | 13 resolved",
        {**AT_ONCE, "recover_seconds": 600},
    ),
    Situation(
        "a bad value interrupts the recovery",
        "0 read 9, 1 read 4, 9 read 9, 30 end",
        "0 fired",
        "0 firing",
        {**AT_ONCE, "recover_seconds": 600},
    ),
    Situation(
        "a value between interrupts the recovery",
        "0 read 9, 1 read 4, 9 read 6, 10 read 4, 30 end",
        "0 fired | 20 resolved",
        "0 firing | 20 resolved",
        {**AT_ONCE, **HYSTERESIS, "recover_seconds": 600},
    ),
    # ---- duplicate and late data
    Situation(
        "the same reading twice counts once", "0 read 9, 0 read 9 at 0, 6 read 9, 6 read 9 at 6", "5 fired", "5 firing"
    ),
    Situation("a reading that is older than the newest one changes nothing", "5 read 4, 6 read 9 at 2, 30 end"),
    Situation("a late good reading does not resolve", "0 read 9, 6 read 9, 7 read 4 at 3", "5 fired", "5 firing"),
    Situation(
        "a backlog is evaluated at the times of its readings",
        "60 upload 0:9 6:9 10:4, 61 end",
        "5 fired | 10 resolved",
        "60 resolved",
        pure=False,
    ),
    Situation("a backlog that ends badly fires at once", "60 upload 30:9 40:9, 61 end", "35 fired", "60 firing"),
    Situation("an old bad value that nothing follows fires", "90 read 9 at 0, 91 end", "5 fired", "90 firing"),
    Situation(
        "a reading from the future counts as now",
        "0 read 9 at 500, 4 read 9, 6 read 4",
        "5 fired | 6 resolved",
        "5 firing | 6 resolved",
    ),
    # ---- gaps
    Situation(
        "a gap does not resolve what fires",
        "0 read 9, 4 read 9, 100 read 9, 103 read 4, 120 end",
        "5 fired | 103 resolved",
        "5 firing | 103 resolved",
    ),
    Situation("a pending alert does not fire in a gap", "0 read 9, 30 end", "", "", SHORT),
    Situation(
        "a gap longer than the patience restarts the duration",
        "0 read 9, 4 read 9, 8 read 9, 11 read 9, 12 end",
        "",
        "",
        SHORT,
    ),
    Situation("missing data alert", "0 read 4, 15 end", "10 fired", "10 firing", ABSENT),
    Situation("missing data alert once", "0 read 4, 90 end", "10 fired", "10 firing", ABSENT),
    Situation(
        "data that come back resolve",
        "0 read 4, 15 read 4",
        "10 fired | 15 resolved",
        "10 firing | 15 resolved",
        ABSENT,
    ),
    Situation(
        "bad data that come back keep it firing",
        "0 read 4, 15 read 9, 20 read 4",
        "10 fired | 20 resolved",
        "10 firing | 20 resolved",
        ABSENT,
    ),
    Situation(
        "missing data resolve",
        "0 read 9, 8 read 9, 30 end",
        "5 fired | 18 resolved",
        "5 firing | 18 resolved",
        FORGIVING,
    ),
    Situation("missing data are ignored by default", "0 read 9, 8 read 9, 600 end", "5 fired", "5 firing"),
    Situation(
        "data are not missing while the cloud is down", "0 read 4, 5 down, 60 up, 65 read 4, 66 end", "", "", ABSENT
    ),
    Situation(
        "data are missing some time after the cloud is up",
        "0 read 4, 5 down, 60 up, 75 end",
        "70 fired",
        "70 firing",
        ABSENT,
    ),
    # ---- restarts and clocks
    Situation(
        "a deadline that passed while the cloud was down comes at its start",
        "0 read 9, 1 down, 30 up, 31 end",
        "5 fired",
        "30 firing",
    ),
    Situation("a restart repeats nothing", "0 read 9, 6 down, 7 up, 8 down, 9 up, 10 end", "5 fired", "5 firing"),
    Situation(
        "a clock that is set back delays nothing", "0 read 9, 1 clock -60, -55 tick, 0 end", "-50 fired", "-50 firing"
    ),
    Situation("a clock that is set forward lets durations end", "0 read 9, 1 clock 30, 32 end", "5 fired", "31 firing"),
    Situation(
        "a wrong clock that is corrected keeps the alert",
        "100 read 9, 106 clock -100, 7 read 4, 8 end",
        "105 fired | 7 resolved",
        "105 firing | 7 resolved",
    ),
    # ---- reminders and people
    Situation(
        "reminders repeat while it fires",
        "0 read 9, 50 read 9, 70 read 4",
        "5 fired | 70 resolved",
        "5 firing | 35 still firing | 65 still firing | 70 resolved",
        {"repeat_seconds": 1800},
    ),
    Situation(
        "acknowledging ends the reminders",
        "0 read 9, 10 ack, 50 read 9, 70 read 4",
        "5 fired | 10 acknowledged | 70 resolved",
        "5 firing | 70 resolved",
        {"repeat_seconds": 1800},
    ),
    Situation(
        "acknowledging twice counts once", "0 read 9, 10 ack, 11 ack, 12 end", "5 fired | 10 acknowledged", "5 firing"
    ),
    Situation("a pending alert cannot be acknowledged", "0 read 9, 1 ack, 6 end", "5 fired", "5 firing"),
    Situation(
        "acknowledged, resolved and back fires again",
        "0 read 9, 1 ack, 2 read 4, 3 read 9",
        "0 fired | 1 acknowledged | 2 resolved | 3 fired",
        "0 firing | 2 resolved | 3 firing",
        AT_ONCE,
    ),
    # ---- silence
    Situation(
        "a silence keeps the state and sends nothing",
        "0 read 9, 1 read 4, 2 silence 60, 3 read 9, 4 read 4, 5 end",
        "0 fired | 1 resolved | 2 silenced | 3 fired | 4 resolved",
        "0 firing | 1 resolved",
        AT_ONCE,
    ),
    Situation(
        "what fires across the end of a silence is sent then",
        "0 read 4, 0 read 9, 1 read 4, 2 silence 60, 3 read 9, 70 end",
        "0 fired | 1 resolved | 2 silenced | 3 fired | 62 unsilenced",
        "0 firing | 1 resolved | 62 still firing",
        AT_ONCE,
    ),
    Situation(
        "what was sent before a silence is not sent again at its end",
        "0 read 9, 1 silence 60, 70 end",
        "0 fired | 1 silenced | 61 unsilenced",
        "0 firing",
        AT_ONCE,
    ),
    Situation(
        "reminders wait for the end of a silence",
        "0 read 9, 10 silence 60, 71 read 9, 80 end",
        "5 fired | 10 silenced | 70 unsilenced",
        "5 firing | 70 still firing",
        {"repeat_seconds": 1800},
    ),
    Situation(
        "a silence that a person ends sends what fires",
        "0 read 9, 0 read 4, 1 silence 60, 2 read 9, 3 unsilence, 4 end",
        "0 fired | 0 resolved | 1 silenced | 2 fired | 3 unsilenced",
        "0 firing | 0 resolved | 3 still firing",
        AT_ONCE,
    ),
    Situation(
        "a silence across a restart ends at its start",
        "0 read 9, 1 silence 30, 2 down, 60 up, 61 end",
        "0 fired | 1 silenced | 60 unsilenced",
        "0 firing",
        AT_ONCE,
    ),
    Situation(
        "resolved in a silence is not sent",
        "0 read 9, 1 silence 60, 2 read 4, 70 end",
        "0 fired | 1 silenced | 2 resolved | 61 unsilenced",
        "0 firing",
        AT_ONCE,
    ),
    # ---- quiet hours
    Situation(
        "quiet hours delay to their end, across midnight",
        "0 read 9, 700 end",
        "0 fired",
        "540 firing",
        {**AT_ONCE, "quiet": NIGHT},
        "2026-01-01T21:00:00+00:00",
        pure=False,
    ),
    Situation(
        "what came and went in quiet hours is sent at their end",
        "0 read 9, 5 read 4, 700 end",
        "0 fired | 5 resolved",
        "540 resolved",
        {**AT_ONCE, "quiet": NIGHT},
        "2026-01-01T21:00:00+00:00",
        pure=False,
    ),
    Situation(
        "quiet hours that drop send nothing",
        "0 read 9, 5 read 4, 700 end",
        "0 fired | 5 resolved",
        "",
        {**AT_ONCE, "quiet": {**NIGHT, "mode": "drop"}},
        "2026-01-01T21:00:00+00:00",
        pure=False,
    ),
    Situation(
        "a reminder after quiet hours that drop",
        "0 read 9, 700 end",
        "0 fired",
        "600 still firing",
        {**AT_ONCE, "quiet": {**NIGHT, "mode": "drop"}, "repeat_seconds": 36000},
        "2026-01-01T21:00:00+00:00",
        pure=False,
    ),
    Situation(
        "the night of the change to summer time is an hour shorter",
        "0 read 9, 700 end",
        "0 fired",
        "480 firing",
        {**AT_ONCE, "quiet": NIGHT},
        "2026-03-28T21:00:00+00:00",
        pure=False,
    ),
    Situation(
        "the night of the change to winter time is an hour longer",
        "0 read 9, 700 end",
        "0 fired",
        "600 firing",
        {**AT_ONCE, "quiet": NIGHT},
        "2026-10-24T20:00:00+00:00",
        pure=False,
    ),
    Situation(
        "other weekdays have no quiet hours",
        "0 read 9, 10 end",
        "0 fired",
        "0 firing",
        {**AT_ONCE, "quiet": {**NIGHT, "days": ["sat", "sun"]}},
        "2026-01-01T21:00:00+00:00",
        pure=False,
    ),
    # ---- groups
    Situation(
        "machines that go bad together make one message",
        "0 read 9, 1 other 9, 2 other 9, 10 end",
        "0 fired | 1 fired",
        "5 firing firing",
        {**AT_ONCE, "group_seconds": 300},
        pure=False,
    ),
    Situation(
        "what fires and resolves in a group is sent once",
        "0 read 9, 1 read 4, 10 end",
        "0 fired | 1 resolved",
        "5 resolved",
        {**AT_ONCE, "group_seconds": 300},
        pure=False,
    ),
    # ---- changes
    Situation(
        "a rule whose threshold changes ends its alerts",
        "0 read 9, 1 edit threshold, 2 read 9, 3 read 21",
        "0 fired | 1 closed | 3 fired",
        "0 firing | 3 firing",
        AT_ONCE,
        pure=False,
    ),
    Situation(
        "a rule whose name changes keeps its alerts",
        "0 read 9, 1 edit name, 2 read 9, 3 read 4",
        "0 fired | 3 resolved",
        "0 firing | 3 resolved",
        AT_ONCE,
        pure=False,
    ),
    Situation(
        "a disabled rule ends its alerts",
        "0 read 9, 1 edit disabled, 2 read 9, 3 end",
        "0 fired | 1 closed",
        "0 firing",
        AT_ONCE,
        pure=False,
    ),
    Situation(
        "a deleted rule ends its alerts and what waits",
        "0 read 9, 1 edit deleted, 20 end",
        "0 fired | 1 closed",
        "",
        {**AT_ONCE, "group_seconds": 300},
        pure=False,
    ),
    Situation(
        "a machine that leaves the scope ends its alert",
        "0 read 9, 1 move, 40 end",
        "0 fired | 1 closed",
        "0 firing",
        {**AT_ONCE, "scope": {"tags": ["cold"]}, "repeat_seconds": 1800},
        pure=False,
    ),
    Situation(
        "a deleted machine ends its alert",
        "0 read 9, 1 vanish, 40 end",
        "0 fired | 1 closed",
        "0 firing",
        AT_ONCE,
        pure=False,
    ),
)
