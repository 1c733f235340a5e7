"""Conditions: the table of results, properties of all readings, and the text of dry runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.decoding import Effort
from schema.errors import ConfigError
from tests.unit.triggers.condition_table import ROWS
from tests.unit.triggers.make import NOW, conditional, data, trigger, upload
from triggers.condition import Eval
from triggers.evaluate import explain, findings, fires, holds, satisfies
from triggers.events import Logged, LogLine, Presence

finite = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
names = st.text("abcxyz", min_size=1, max_size=3)
readings = st.recursive(
    scalars | st.lists(scalars, max_size=3), lambda inner: st.dictionaries(names, inner, max_size=3), max_leaves=8
)
ORDER = ("lt", "gt", "lte", "gte")


def case(operator: str, value: Any) -> Eval:
    return Eval(operator=operator, value=value)


@pytest.mark.parametrize(("operator", "value", "reading", "outcome"), ROWS)
def test_table(operator: str, value: Any, reading: Any, outcome: bool) -> None:
    expected = case(operator, value)
    assert holds(expected, reading) is outcome
    result = findings((expected,), reading)
    assert all(item.holds for item in result) is outcome
    assert all(element.reason for element in result)


def test_the_table_is_large_and_has_no_row_twice() -> None:
    assert len(ROWS) >= 150
    assert len({repr(row) for row in ROWS}) == len(ROWS)
    assert sum(outcome for *_, outcome in ROWS) > 60


@given(finite, finite)
def test_less_and_greater_or_equal_are_complements_on_finite_numbers(left: float, right: float) -> None:
    reading = {"t": left}
    assert holds(case("lt", {"t": right}), reading) is not holds(case("gte", {"t": right}), reading)
    assert holds(case("gt", {"t": right}), reading) is not holds(case("lte", {"t": right}), reading)
    assert holds(case("eq", {"t": right}), reading) is not holds(case("neq", {"t": right}), reading)
    assert holds(case("lt", {"t": right}), reading) is (left < right)


@given(st.text(max_size=5), st.text(max_size=5))
def test_strings_order_as_they_do(left: str, right: str) -> None:
    reading = {"s": left}
    assert [holds(case(item, {"s": right}), reading) for item in (*ORDER, "eq")] == [
        left < right, left > right, left <= right, left >= right, left == right,
    ]  # fmt: skip


@given(readings, st.integers() | st.text(max_size=3) | finite, st.sampled_from((*ORDER, "eq", "neq")))
def test_equal_and_different_never_both_and_never_on_what_is_not_there(reading: Any, right: Any, operator: str) -> None:
    expected = {"x": right}
    assert not (holds(case("eq", expected), reading) and holds(case("neq", expected), reading))
    if not isinstance(reading, Mapping) or ("x" not in reading and "readings" not in reading):
        assert not holds(case(operator, expected), reading)


@given(st.lists(names, min_size=1, max_size=5), finite, readings)
def test_nested_and_dotted_paths_are_the_same(path: list[str], right: float, other: Any) -> None:
    nested: Any = right
    reading: Any = right
    for name in reversed(path):
        nested, reading = {name: nested}, {name: reading}
    dotted = {".".join(path): right}
    for operator in (*ORDER, "eq", "neq"):
        assert holds(case(operator, nested), other) is holds(case(operator, dotted), other)
    assert holds(case("eq", nested), reading)
    assert holds(case("eq", dotted), {"readings": reading})


@given(st.lists(st.tuples(st.sampled_from(ORDER), finite), max_size=4), finite)
def test_all_evals_must_hold(pairs: list[tuple[str, float]], left: float) -> None:
    evals = [case(operator, {"t": right}) for operator, right in pairs]
    assert satisfies(evals, {"t": left}) is all(holds(item, {"t": left}) for item in evals)
    assert satisfies([], {"t": left})


@given(readings, readings)
def test_nothing_that_can_be_uploaded_makes_it_fail(reading: Any, right: Any) -> None:
    if right is not None:
        try:
            expected = case("eq", {"x": right})
        except ConfigError:  # null in a nested value
            return
        findings((expected,), {"x": reading})
        if holds(expected, {"x": reading}):
            assert type(reading) is type(right) or isinstance(reading, (int, float))


@given(st.floats())
def test_numbers_that_are_not_finite_satisfy_nothing(left: float) -> None:
    if not math.isfinite(left):
        assert not any(holds(case(item, {"t": 0}), {"t": left}) for item in (*ORDER, "eq", "neq"))


def test_a_reading_nested_without_end_is_harmless() -> None:
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    assert not holds(case("eq", {"x": [1]}), {"x": deep})
    assert holds(case("neq", {"x": [1]}), {"x": deep})
    assert "nested too deeply" in findings((case("eq", {"x": [1]}),), {"x": deep})[0].reason


# ---- the interpretation of an event by a trigger

HOT = {"operator": "gt", "value": {"t": 30}}


def test_a_batch_fires_once_with_the_first_match_and_the_number_of_them() -> None:
    firing = fires(trigger(conditional(HOT)), upload({"t": 29}, {"t": 31}, {"t": 32}, {"t": 3}))
    assert firing is not None
    assert firing.reading is not None
    assert firing.reading.data == {"t": 31}
    assert firing.count == 2
    assert firing.type == "conditional_data_ingested"
    assert fires(trigger(conditional(HOT)), upload({"t": 29}, {"t": 30})) is None
    assert fires(trigger(conditional(HOT)), upload()) is None


def test_evals_hold_together_in_one_reading() -> None:
    expected = trigger(conditional(HOT, {"operator": "eq", "value": {"on": True}}))
    assert fires(expected, upload({"t": 31, "on": False}, {"t": 29, "on": True})) is None
    assert fires(expected, upload({"t": 31, "on": False}, {"t": 31, "on": True})) is not None


@pytest.mark.parametrize("event", [conditional(), {**conditional(), "conditional": {
    "data_capture_method": "sensor:t:Readings", "conditions": {"evals": []}}}])  # fmt: skip
def test_without_conditions_every_upload_of_the_component_fires(event: Mapping[str, Any]) -> None:
    assert fires(trigger(event), upload({"t": 1})) is not None
    assert fires(trigger(event), upload(data_type="binary")) is not None
    assert fires(trigger(event), upload(component_name="u")) is None


@pytest.mark.parametrize(
    ("method", "came", "outcome"),
    [
        ("sensor:t:Readings", {}, True),
        ("sensor:t:Readings", {"component_type": "rdk:component:sensor"}, True),
        ("rdk:component:sensor:t:Readings", {}, True),
        ("sensor:t:readings", {}, False),
        ("camera:t:Readings", {}, False),
        ("sensor:T:Readings", {}, False),
        ("sensor:a:b:Readings", {"component_name": "a:b"}, True),
        ("sensor:remote:t:Readings", {}, False),
        ("sensor:t:Readings", {"method": "Position"}, False),
        ("sensor:t:Readings", {"component_type": "generic"}, False),
    ],
)
def test_whose_data_a_condition_is_about(method: str, came: Mapping[str, Any], outcome: bool) -> None:
    assert (fires(trigger(conditional(HOT, method=method)), upload({"t": 31}, **came)) is not None) is outcome


@pytest.mark.parametrize("kind", ["binary", "tabular", "file", "unspecified"])
def test_data_of_the_listed_types_fires(kind: str) -> None:
    firing = fires(trigger(data("tabular", kind)), upload(data_type=kind, component_name="whatever"))
    assert firing is not None
    assert firing.type == "part_data_ingested"
    others = {"binary", "tabular", "file", "unspecified"} - {kind}
    assert fires(trigger(data(*sorted(others))), upload({"t": 1}, data_type=kind)) is None


def test_presence() -> None:
    online, offline = trigger({"type": "part_online"}), trigger({"type": "part_offline"})
    assert fires(online, Presence(True)) is not None
    assert fires(online, Presence(False)) is None
    assert fires(offline, Presence(False)) is not None
    assert fires(offline, Presence(True)) is None
    assert fires(online, upload({"t": 1})) is None
    assert fires(trigger(data("tabular")), Presence(True)) is None


def test_log_entries_of_the_wanted_levels_oldest_first() -> None:
    expected = trigger({"type": "conditional_logs_ingested", "log_levels": ["error", "warn"]})
    early, late = (LogLine(NOW.replace(second=second), "warn", "x", "y") for second in (1, 9))
    middle = LogLine(NOW.replace(second=5), "error", "x", "y")
    firing = fires(expected, Logged({"warn": (late, early), "info": (early,), "error": (middle,)}))
    assert firing is not None
    assert firing.lines == (early, middle, late)
    assert firing.count == 3
    assert fires(expected, Logged({"info": (early,)})) is None
    assert fires(expected, Logged({"error": ()})) is None
    assert fires(expected, Presence(True)) is None


# ---- dry runs


def test_a_dry_run_says_what_was_compared() -> None:
    expected = trigger(conditional(HOT, {"operator": "regex", "value": {"state.door": "^open"}}))
    said = explain(expected, upload({"readings": {"t": 31.5, "state": {"door": "ajar"}}}))
    assert not said.fires
    assert said.reason == "all comparisons must hold: 1 of 2 do not"
    assert [
        (finding.path, finding.operator, finding.value, finding.right, finding.holds, finding.reason)
        for finding in said.findings
    ] == [
        ("t", "gt", 31.5, 30, True, "31.5 is greater than 30"),
        ("state.door", "regex", "ajar", "^open", False, "'^open' is not found in 'ajar'"),
    ]


def test_a_dry_run_shows_the_reading_that_fires() -> None:
    said = explain(trigger(conditional(HOT)), upload({"t": 1}, {"t": 31}, {"t": 32}))
    assert said.fires
    assert said.reason == "2 of 3 readings satisfy all comparisons"
    assert said.findings[0].value == 31


@pytest.mark.parametrize(
    ("value", "reading", "words"),
    [
        ({"t": 1}, {}, "the reading has no such field"),
        ({"t": 1}, {"t": None}, "the field is null"),
        ({"t": 1}, {"t": "1"}, "'1' is a string, 1 is a number: values of different types are not compared"),
        ({"t": 1}, {"t": True}, "true is a boolean, 1 is a number: values of different types are not compared"),
        ({"t": 1}, {"t": math.nan}, "nan is not a finite number"),
        ({"t": 1}, {"t": 0}, "0 is not greater than 1"),
        (1, {"t": 1}, "the reading is an object, not a single value"),
        ({"password": "a"}, {"password": "b"}, "*** is greater than ***"),
    ],
)
def test_words(value: Any, reading: Any, words: str) -> None:
    assert findings((case("gt", value),), reading)[0].reason == words


@pytest.mark.parametrize(
    ("event", "happening", "words"),
    [
        (conditional(HOT), Presence(True), "waits for conditional_data_ingested"),
        (
            conditional(HOT),
            upload({"t": 1}, component_name="u"),
            "data was received from sensor:u:Readings; the trigger listens",
        ),
        (conditional(HOT), upload(), "no readings"),
        (conditional(), upload(), "every upload from this component fires"),
        (data("binary"), upload(), "data of type tabular was received; the trigger waits for binary"),
        ({"type": "part_online"}, Presence(False), "the part went offline; the trigger waits for part_online"),
        ({"type": "part_online"}, upload(), "data was received; the trigger waits for part_online"),
        ({"type": "conditional_logs_ingested", "log_levels": ["error"]}, Logged({"info": ()}), "logged: 0 info"),
    ],
)
def test_why_a_trigger_is_not_met(event: Mapping[str, Any], happening: Any, words: str) -> None:
    said = explain(trigger(event), happening)
    assert words in said.reason
    assert said.fires is (fires(trigger(event), happening) is not None)


def test_a_search_that_takes_too_long_is_stopped_and_reported() -> None:
    expected = case("regex", {"s": "(a|aa|aaa|.)*" * 20 + "z"})
    finding = findings((expected,), {"s": "a" * 8000})[0]
    assert not finding.holds
    assert "was stopped" in finding.reason


@pytest.mark.parametrize(("left", "fired"), [(2, True), (1, False), (0, False)])
def test_a_condition_needs_a_step_for_each_comparison(left: int, fired: bool) -> None:
    both = trigger(conditional({"operator": "gt", "value": {"a": 1}}, {"operator": "lt", "value": {"a": 9}}))
    effort = Effort(left)
    assert (fires(both, upload({"a": 5}), effort) is not None) is fired
    assert effort.left == 0
