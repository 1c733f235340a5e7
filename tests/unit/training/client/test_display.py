"""Events as text: lines for programs, a bar on a terminal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from training.client.display import Display, duration, line_of
from training.client.records import Numbered
from training.jobs.events import JobEvent, Log, Metric, Progress, Status
from training.jobs.lifecycle import JobState

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def fed(display: Display, *events: tuple[int, JobEvent]) -> list[str]:
    return [display.feed(Numbered(n, BEGIN + timedelta(seconds=at), event)) for n, (at, event) in enumerate(events)]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (Log("hello"), "hello"),
        (Log("careful", "warning"), "WARNING: careful"),
        (Log("a\x1b[31mb\u202ec\x00"), "a [31mb c "),
        (Metric("loss", 0.123456789, 7), "loss 0.123457 (step 7)"),
        (Progress(1, 4), "1 of 4 done"),
        (Status(JobState.FAILED, "no memory"), "the job is failed: no memory"),
        (Status(JobState.PENDING), "the job is pending"),
    ],
)
def test_lines(event: JobEvent, line: str) -> None:
    assert line_of(event) == line
    assert fed(Display(), (0, event)) == [f"{line}\n"]


def test_without_a_terminal_there_is_no_bar() -> None:
    display = Display()
    fed(display, (0, Progress(1, 4)))
    assert display.close() == ""


def test_without_a_terminal_the_progress_has_a_line_for_each_tenth() -> None:
    display = Display()
    steps = [(done, Progress(done, 500)) for done in range(501)]
    lines = [line for line in fed(display, *steps) if line]
    assert lines[:3] == ["0 of 500 done\n", "50 of 500 done, 8 min left\n", "100 of 500 done, 7 min left\n"]
    assert lines[-1] == "500 of 500 done\n"
    assert len(lines) == 11
    assert fed(display, (600, Progress(0, 500))) == ["0 of 500 done\n"]  # another attempt
    assert fed(display, (601, Progress(0, 0))) == ["0 of 0 done\n"]


def test_a_bar_stays_below_the_lines() -> None:
    display = Display(100)
    first, bar, metric, line = fed(
        display, (0, Log("start")), (0, Progress(0, 4)), (1, Metric("loss", 0.5)), (2, Log("next"))
    )
    empty = f"[{'.' * 24}] 0/4   0%"
    assert first == "start\n"
    assert bar == f"\r\x1b[K{empty}"
    assert metric == f"\r\x1b[K{empty}  loss 0.5"
    assert line == f"\r\x1b[Knext\n{empty}  loss 0.5"
    assert display.close() == "\n"
    assert display.close() == ""


def test_the_time_left_is_estimated_from_the_progress() -> None:
    *_, bar = fed(Display(100), (0, Progress(0, 10)), (5, Progress(1, 10)), (10, Progress(2, 10)))
    assert bar.endswith("2/10  20%  40 s left")
    *_, done = fed(Display(100), (0, Progress(0, 2)), (5, Progress(2, 2)))
    assert done.endswith(f"[{'#' * 24}] 2/2 100%")


def test_a_job_that_starts_again_has_a_new_estimate() -> None:
    *_, bar = fed(
        Display(100),
        (0, Progress(0, 10)),
        (5, Progress(5, 10)),
        (100, Status(JobState.PENDING)),
        (200, Progress(5, 10)),
        (210, Progress(6, 10)),
    )
    assert bar.endswith("6/10  60%  40 s left")


def test_progress_that_goes_back_has_a_new_estimate() -> None:
    *_, bar = fed(Display(100), (0, Progress(8, 10)), (100, Progress(0, 10)), (110, Progress(1, 10)))
    assert bar.endswith("1/10  10%  2 min left")


def test_the_bar_fits_the_terminal() -> None:
    *_, bar = fed(Display(30), (0, Progress(1, 10)), (1, Metric("a" * 90, 1.0)))
    assert len(bar) == len("\r\x1b[K") + 29
    *_, bar = fed(Display(200), (0, Progress(1, 10)), *((1, Metric(name, 1.0)) for name in "abcd"))
    assert bar.endswith("b 1  c 1  d 1")


def test_durations() -> None:
    assert [duration(seconds) for seconds in (3, 600, 7200)] == ["3 s", "10 min", "2.0 h"]
