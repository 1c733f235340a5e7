"""Lines of output become events, and whatever is printed can be stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.jobs.events import (
    MAX_MESSAGE,
    REPORT,
    Log,
    Metric,
    Progress,
    Status,
    decode_event,
    encode_event,
    of_line,
    report,
)
from training.jobs.lifecycle import JobState

EVENTS = [Status(JobState.FAILED, "why"), Log("x", "error"), Metric("loss", 0.25, 7), Progress(7, 20)]


@pytest.mark.parametrize("event", EVENTS)
def test_the_stored_form(event: Status | Log | Metric | Progress) -> None:
    assert decode_event(encode_event(event)) == event


@pytest.mark.parametrize(
    "event", [Metric("loss", 0.25, 7), Metric("loss", 0.25, 2**53), Progress(0, 0), Progress(7, 20)]
)
def test_a_report_is_understood(event: Metric | Progress) -> None:
    assert of_line(report(event)) == event


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        '{"kind":"status","state":"completed"}',  # a program does not say how its job ends
        '{"kind":"metric","name":"","value":1}',
        '{"kind":"metric","name":"x","value":1e999}',
        '{"kind":"metric","name":"x","value":1,"step":-1}',
        '{"kind":"progress","done":3,"total":2}',
        '{"kind":"progress","done":1,"total":9223372036854775808}',
    ],
)
def test_a_malformed_report_is_a_log_entry(content: str) -> None:
    assert of_line(REPORT + content) == Log(REPORT + content)


def test_levels() -> None:
    assert of_line("ERROR: no disk") == Log("no disk", "error")
    assert of_line("ERRORS: 0") == Log("ERRORS: 0")


@given(st.text())
def test_whatever_is_printed_can_be_stored(line: str) -> None:
    event = of_line(line)
    assert isinstance(event, Log)
    assert "\0" not in encode_event(event)
    assert len(event.message) <= MAX_MESSAGE
    assert decode_event(encode_event(event)) == event
