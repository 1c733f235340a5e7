"""A resource that stays broken logs one error; a repeated reason is logged at debug level."""

from __future__ import annotations

from structlog.testing import capture_logs

from nursery_graph import State, Transition
from runtime.server.activity import TransitionLog

NAME = "rdk:component:motor/left"


def tried(reason: str) -> list[Transition]:
    return [
        Transition(NAME, State.UNCONFIGURED, State.CONFIGURING, "", 0.0),
        Transition(NAME, State.CONFIGURING, State.UNHEALTHY, reason, 0.0),
    ]


def errors(*transitions: Transition) -> list[str]:
    log = TransitionLog()
    with capture_logs() as lines:
        for transition in transitions:
            log.note(transition)
    return [line["reason"] for line in lines if line["log_level"] == "error"]


def test_each_reason_is_an_error_once() -> None:
    assert errors(*tried("gone"), *tried("gone"), *tried("gone")) == ["gone"]
    assert errors(*tried("gone"), *tried("busy"), *tried("busy"), *tried("gone")) == ["gone", "busy", "gone"]


def test_it_is_an_error_again_after_it_worked_or_was_removed() -> None:
    ready = Transition(NAME, State.CONFIGURING, State.READY, "", 0.0)
    removed = Transition(NAME, State.UNHEALTHY, None, "", 0.0)
    assert errors(*tried("gone"), ready, *tried("gone")) == ["gone", "gone"]
    assert errors(*tried("gone"), removed, *tried("gone")) == ["gone", "gone"]
