"""Activity events: what the machine did, in which order and for how long."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest
import trio
import trio.testing

from nursery_graph import State, Transition
from runtime.server.activity import Activity
from runtime.server.memory import open_machine
from telemetry.logs import loggers
from telemetry.logs.activity import log_event
from telemetry.logs.logger_names import ACTIVITY
from telemetry.logs.loggers import Logs
from telemetry.logs.rules import Rules, compile_pattern


@pytest.fixture
def logs() -> Iterator[Logs]:
    before = logging.getLogger().level
    pipeline = loggers.configure_logs()
    yield pipeline
    pipeline.close()
    logging.getLogger().setLevel(before)


def activity_events(logs: Logs) -> list[dict[str, Any]]:
    return [dict(entry.fields) for entry in logs.ring.entries() if entry.logger == ACTIVITY]


def words(logs: Logs, *fields: str) -> list[str]:
    return [
        " ".join(str(event[key]) for key in ("activity", "event", *fields) if key in event)
        for event in activity_events(logs)
    ]


def test_an_event_has_words_and_fields_and_is_always_shown(logs: Logs) -> None:
    logs.set_rules(Rules([(compile_pattern("*"), logging.ERROR)]))
    for _ in range(9):
        log_event("module", "stop", module="m", reason="", event_name="x")
    assert len(logs.ring.entries()) == 9
    entry = logs.ring.entries()[0]
    assert (entry.level_name, entry.logger, entry.message) == ("INFO", ACTIVITY, "module stop")
    assert entry.fields == {"activity": "module", "event": "stop", "module": "m", "event_name": "x"}
    assert entry.caller.startswith("server/test_activity.py:")


async def test_a_machine_tells_what_it_does(logs: Logs, autojump_clock: trio.testing.MockClock) -> None:
    def document(revision: str, *names: str, ratio: int = 1) -> dict[str, Any]:
        sensors = [
            {"name": name, "api": "rdk:component:sensor", "model": "fake", "attributes": {"ratio": ratio}}
            for name in names
        ]
        return {"revision": revision, "components": sensors}

    async with open_machine(document("one", "a", "b")) as memory:
        memory.graph.subscribe(Activity().note)
        await memory.machine.lifecycle.running.wait()
        for new in (document("two", "a"), document("three", "a", ratio=2), b"{"):
            before = len(activity_events(logs))
            memory.write(new)
            async with aclosing(logs.ring.changes()) as changes:
                async for _ in changes:
                    if any(event["event"] in ("complete", "fail") for event in activity_events(logs)[before:]):
                        break
    events = words(logs, "revision", "resource")
    assert events[0] == "reconfigure start one"
    assert sorted(events[1:3]) == [f"resource construct rdk:component:sensor/{name}" for name in "ab"]
    assert events[3:] == [
        "reconfigure complete one",
        "reconfigure start two",
        "resource remove rdk:component:sensor/b",
        "reconfigure complete two",
        "reconfigure start three",
        "resource rebuild rdk:component:sensor/a",
        "reconfigure complete three",
        "reconfigure fail",
    ]
    complete = [event for event in activity_events(logs) if event["event"] == "complete"]
    assert [(event["ready"], event["configured"]) for event in complete] == [(2, 2), (1, 1), (1, 1)]
    assert all(event["duration"] >= 0 for event in activity_events(logs) if "duration" in event)
    assert "ends too early" in activity_events(logs)[-1]["reason"]


READY, SICK, STARTING, REMOVING = State.READY, State.UNHEALTHY, State.CONFIGURING, State.REMOVING


@pytest.mark.parametrize(
    ("name", "states", "events"),
    [
        (
            "internal/module/arm",
            [STARTING, READY, SICK, STARTING, READY, REMOVING, None],
            ["module start arm 1.0", "module stop arm why 2", "module start arm 1.0", "module stop arm why 5"],
        ),
        ("internal/module/arm", [STARTING, SICK, STARTING, SICK, None], []),  # it was never ready: errors report that
        (
            "internal/remote/far",
            [STARTING, READY, SICK, SICK, READY, REMOVING],
            [
                "remote connect far 1.0",
                "remote disconnect far why 2",
                "remote connect far",
                "remote disconnect far why 5",
            ],
        ),
        ("internal/rpc", [STARTING, READY, SICK], []),
        (
            "rdk:component:arm/a",
            [STARTING, SICK, STARTING, READY, SICK, READY, REMOVING, STARTING, READY, REMOVING, None],
            [
                "resource construct rdk:component:arm/a 1.0",
                "resource rebuild rdk:component:arm/a 1.0",
                "resource remove rdk:component:arm/a",
            ],
        ),
        ("rdk:component:arm/a", [SICK, REMOVING, None], []),
    ],
)
def test_events_by_transitions(logs: Logs, name: str, states: list[State | None], events: list[str]) -> None:
    activity, before = Activity(), None
    for number, after in enumerate(states):
        activity.note(Transition(name, before, after, f"why {number}", float(number)))
        before = after
    assert words(logs, "module", "remote", "resource", "reason", "duration") == events
