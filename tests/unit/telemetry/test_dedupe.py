"""At most three outputs of a message in ten seconds, and every suppressed message is counted."""

from __future__ import annotations

from collections import Counter, defaultdict

from hypothesis import given
from hypothesis import strategies as st

from telemetry.logs.dedupe import MAX_KEYS, THRESHOLD, WINDOW, DedupeVerdict, Deduplicator


def test_three_pass_the_fourth_is_a_notice_and_the_rest_are_dropped() -> None:
    dedupe = Deduplicator()
    verdicts = [dedupe.step("a", 1.0) for _ in range(6)]
    assert verdicts == [DedupeVerdict.SHOW] * 3 + [DedupeVerdict.NOTICE] + [DedupeVerdict.DROP] * 2
    assert dedupe.deadline == 11.0
    assert dedupe.expire(10.999) == []
    assert dedupe.expire(11.0) == [("a", 3)]
    assert dedupe.deadline is None
    assert dedupe.expire(12.0) == []
    assert dedupe.step("a", 12.0) is DedupeVerdict.SHOW


def test_the_window_slides() -> None:
    dedupe = Deduplicator()
    assert [dedupe.step("a", t) for t in (0.0, 9.0, 9.5)] == [DedupeVerdict.SHOW] * 3
    assert dedupe.expire(10.0) == []
    assert dedupe.step("a", 10.0) is DedupeVerdict.SHOW  # the output at 0 is outside the window
    assert dedupe.step("a", 10.1) is DedupeVerdict.NOTICE  # 9, 9.5 and 10 are inside


def test_messages_do_not_disturb_each_other() -> None:
    dedupe = Deduplicator()
    for _ in range(5):
        dedupe.step("a", 0.0)
    assert dedupe.step("b", 0.0) is DedupeVerdict.SHOW


def test_slow_repetition_is_never_suppressed() -> None:
    dedupe = Deduplicator()
    for number in range(100):
        now = number * 4.0  # three in twelve seconds
        assert dedupe.expire(now) == []
        assert dedupe.step("a", now) is DedupeVerdict.SHOW


def test_memory_is_bounded_and_a_forgotten_count_is_reported() -> None:
    dedupe = Deduplicator()
    for _ in range(5):
        dedupe.step("noisy", 0.0)
    reported = []
    for number in range(3 * MAX_KEYS):
        reported += dedupe.expire(0.5)
        dedupe.step(number, 0.5)
    assert len(dedupe._memories) <= MAX_KEYS + 1
    assert reported == [("noisy", 2)]


def test_flush_reports_everything() -> None:
    dedupe = Deduplicator()
    for key in "aaaabbbbb":
        dedupe.step(key, 0.0)
    assert dedupe.flush() == [("a", 1), ("b", 2)]
    assert dedupe.flush() == []
    assert dedupe.deadline is None


events = st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 6)), max_size=80)


@given(events)
def test_every_window_holds_at_most_three_outputs_and_counts_add_up(steps: list[tuple[str, float]]) -> None:
    dedupe = Deduplicator()
    now = 0.0
    shown: dict[str, list[float]] = defaultdict(list)
    suppressed: Counter[object] = Counter()
    reported: Counter[object] = Counter()
    for key, wait in steps:
        now += wait
        for ended, count in dedupe.expire(now):
            assert count > 0
            reported[ended] += count
        if dedupe.deadline is not None:
            assert dedupe.deadline > now
        if dedupe.step(key, now) is DedupeVerdict.SHOW:
            shown[key].append(now)
        else:
            suppressed[key] += 1
    for times in shown.values():
        for first, fourth in zip(times, times[THRESHOLD:], strict=False):
            assert fourth - first >= WINDOW * (1 - 1e-9)
    reported.update(dict(dedupe.flush()))
    assert reported == suppressed


@given(events)
def test_nothing_is_suppressed_without_cause(steps: list[tuple[str, float]]) -> None:
    dedupe = Deduplicator()
    now = 0.0
    shown: dict[str, list[float]] = defaultdict(list)
    for key, wait in steps:
        now += wait
        dedupe.expire(now)
        verdict = dedupe.step(key, now)
        recent = [time for time in shown[key] if time + WINDOW > now]
        assert (verdict is DedupeVerdict.SHOW) == (len(recent) < THRESHOLD)
        if verdict is DedupeVerdict.SHOW:
            shown[key].append(now)
