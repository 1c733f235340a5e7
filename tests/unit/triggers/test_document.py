"""Triggers of a configuration: the parsed values, and the messages for mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.triggers.make import HOOK, SECRET, conditional, data, raw, trigger
from triggers.document import decode, examine_triggers, signing_keys, split_method

ONLINE = {"type": "part_online"}


def eval_of(operator: str, value: Any) -> dict[str, Any]:
    return raw(conditional({"operator": operator, "value": value}))


def test_everything_that_a_trigger_can_hold() -> None:
    entry = raw(
        conditional(
            {"operator": "lt", "value": {"coordinate": {"latitude": 50}}}, method="movement_sensor:gps:Position"
        ),
        {
            **HOOK,
            "seconds_between_notifications": 60,
            "auth": {"basic": {"username": "ann", "password": "hush"}},
            "secret": SECRET,
        },
        {"type": "email", "value": "ann@example.com", "seconds_between_notifications": 0.5},
        {"type": "email", "value": "all_machine_owners"},
        notes="Ask Ann.",
        secret=SECRET,
    )
    result = examine_triggers([entry])
    assert (result.problems, result.warnings) == ((), ())
    first = result.triggers[0]
    assert first.event.conditional is not None
    assert first.event.conditional.evals[0].operator == "lt"
    assert [target.seconds_between_notifications for target in first.notifications] == [60, 0.5, 0]
    assert first.notifications[0].auth is not None
    assert first.notifications[0].auth.basic.password == "hush"
    assert first.notes == "Ask Ann."


def test_secrets_are_not_in_what_is_printed() -> None:
    first = trigger(ONLINE, {**HOOK, "auth": {"basic": {"username": "ann", "password": "hush-hush"}}, "secret": SECRET})
    assert "hush-hush" not in repr(first)
    assert SECRET not in repr(first)


@pytest.mark.parametrize(
    "event",
    [
        data("binary", "tabular", "file", "unspecified"),
        conditional(),
        {"type": "part_online"},
        {"type": "part_offline"},
        {"type": "conditional_logs_ingested", "log_levels": ["error", "warn", "info"]},
    ],
)
def test_every_type_of_event(event: Any) -> None:
    assert examine_triggers([raw(event)]).problems == ()


@pytest.mark.parametrize(
    ("entry", "path", "words"),
    [
        ("x", "triggers.0", "an object"),
        ({**raw(ONLINE), "name": 5}, "triggers.0.name", "string"),
        ({**raw(ONLINE), "name": "a\nb"}, "triggers.0.name", "control"),
        ({**raw(ONLINE), "name": " "}, "triggers.0.name", "is empty"),
        ({**raw(ONLINE), "notifications": []}, "triggers.0.notifications", "add a webhook"),
        ({"name": "t", "event": ONLINE}, "triggers.0", "'notifications' is missing"),
        ({"name": "t", "notifications": [HOOK]}, "triggers.0", "'event' is missing"),
        (raw({"type": "part_onlin"}), "triggers.0.event.type", "part_online"),
        (raw({"type": "part_data_ingested"}), "triggers.0.event.data_ingested", "data_types"),
        (raw(data()), "triggers.0.event.data_ingested.data_types", "is empty"),
        (raw(data("tabula")), "triggers.0.event.data_ingested.data_types.0", "tabular"),
        (raw({"type": "conditional_data_ingested"}), "triggers.0.event.conditional", "sensor:name:Readings"),
        (raw({"type": "conditional_logs_ingested"}), "triggers.0.event.log_levels", "error"),
        (raw({"type": "conditional_logs_ingested", "log_levels": ["debug"]}), "triggers.0.event.log_levels.0", "error"),
        (raw(conditional(method="sensor:t")), "conditional.data_capture_method", "sensor:door"),
        (raw(conditional(method="sensor::Readings")), "conditional.data_capture_method", "is not a component type"),
        (eval_of("above", {"t": 1}), "evals.0.operator", "not a valid value"),
        (eval_of("gt", {"t": True}), "evals.0.value.t", "cannot be ordered"),
        (eval_of("gt", {"a": {"b": [1]}}), "evals.0.value.a.b", "cannot be ordered"),
        (eval_of("eq", {"t": None}), "evals.0.value.t", "null"),
        (eval_of("eq", None), "evals.0.value", "null"),
        (eval_of("gt", {}), "evals.0.value", "cannot be ordered"),
        (eval_of("eq", {}), "evals.0.value", "no field"),
        (eval_of("eq", {"a..b": 1}), "evals.0.value.a..b", "empty"),
        (eval_of("eq", {".".join("a" * 40): 1}), "triggers.0.event.conditional", "more than 32"),
        (eval_of("regex", {"t": 1}), "evals.0.value.t", "not a regular expression"),
        (eval_of("regex", {"t": "(a"}), "evals.0.value.t", "unterminated"),
        (eval_of("regex", {"t": "(?=a)"}), "evals.0.value.t", "look-around"),
        (eval_of("regex", {"t": "a" * 600}), "evals.0.value.t", "600 characters"),
        (raw(ONLINE, {"type": "sms"}), "triggers.0.notifications.0.type", "webhook"),
        (raw(ONLINE, {"type": "webhook"}), "triggers.0.notifications.0.value", "is empty"),
        (raw(ONLINE, {"type": "webhook", "value": "ftp://x/"}), "triggers.0.notifications.0.value", "ftp"),
        (raw(ONLINE, {"type": "webhook", "value": "https://a:b@x/"}), "triggers.0.notifications.0.value", "user or"),
        (raw(ONLINE, {"type": "email", "value": "ann"}), "triggers.0.notifications.0.value", "ann@example.com"),
        (raw(ONLINE, {"type": "email", "value": "a@b\r\nBcc: c@d"}), "triggers.0.notifications.0.value", "an email"),
        (raw(ONLINE, {"type": "email", "value": "a@b.c, d@e.f"}), "triggers.0.notifications.0.value", "not an email"),
        (raw(ONLINE, {**HOOK, "seconds_between_notifications": -1}), "seconds_between_notifications", "out of range"),
        (raw(ONLINE, {**HOOK, "seconds_between_notifications": "60"}), "seconds_between", "without quotes"),
        (raw(ONLINE, {**HOOK, "auth": {"basic": {"username": "a"}}}), "auth.basic", "'password' is missing"),
        (raw(ONLINE, {**HOOK, "auth": {}}), "triggers.0.notifications.0.auth", "'basic' is missing"),
        (raw(ONLINE, {**HOOK, "auth": {"basic": {"username": "a:b", "password": "c"}}}), "basic.username", "colon"),
        (raw(ONLINE, {"type": "email", "value": "a@b.c", "secret": SECRET}), "notifications.0.secret", "to webhooks"),
        (raw(ONLINE, {**HOOK, "secret": "abc"}), "triggers.0.notifications.0.secret", "whsec_"),
        (raw(ONLINE, {**HOOK, "secret": "whsec_YQ=="}), "notifications.0.secret", "1 bytes"),
        (raw(ONLINE, {**HOOK, "secret": "whsec_!!"}), "triggers.0.notifications.0.secret", "base64"),
        (raw(ONLINE, secret="hush-hush"), "triggers.0.secret", "whsec_"),
    ],
)  # fmt: skip
def test_a_mistake_has_its_path_and_a_remedy_and_stops_no_other(entry: Any, path: str, words: str) -> None:
    result = examine_triggers([entry, raw(ONLINE, name="good")])
    assert [item.name for item in result.triggers] == ["good"]
    text = str(result.problems[0])
    assert result.problems[0].path.startswith("triggers.0")
    assert path in result.problems[0].path
    assert words in text
    assert "hush-hush" not in text
    assert result.problems[0].value != "hush-hush"


def test_all_mistakes_are_reported() -> None:
    problems = examine_triggers(
        [raw({"type": "x"}, {"type": "webhook", "value": "x", "secret": "y"}, {"type": "email"})]
    ).problems
    assert len(problems) == 4


def test_two_of_one_name_are_both_unusable() -> None:
    result = examine_triggers([raw(ONLINE), raw(ONLINE), raw(ONLINE, name="u")])
    assert [item.name for item in result.triggers] == ["u"]
    assert [problem.path for problem in result.problems] == ["triggers.0.name", "triggers.1.name"]


@pytest.mark.parametrize("wrong", [None, {}, "x", 5, b"x"])
def test_values_that_are_not_lists(wrong: Any) -> None:
    result = examine_triggers(wrong)
    assert not result.triggers
    assert result.problems[0].path == "triggers"


def test_too_many_triggers() -> None:
    result = examine_triggers([raw(ONLINE, name=str(index)) for index in range(201)])
    assert len(result.triggers) == 200
    assert "201 triggers" in str(result.problems[0])


def test_triggers_without_effect_cause_a_warning() -> None:
    result = examine_triggers([
        raw({**ONLINE, "log_levels": ["error"]}, {**HOOK, "seconds_between_notifications": 5}, colour="red"),
        raw(ONLINE, {"type": "push", "application": "x"}, name="u"),
    ])  # fmt: skip
    assert len(result.triggers) == 2
    assert not result.problems
    assert {warning.path for warning in result.warnings} == {
        "triggers.0.colour",
        "triggers.0.event.log_levels",
        "triggers.0.notifications.0.seconds_between_notifications",
        "triggers.1.notifications.0",
    }


def test_a_condition_nested_without_end_is_refused() -> None:
    deep: Any = 1
    for _ in range(800):
        deep = {"a": deep}
    for value in (deep, {"x": [deep]}):
        for operator in ("eq", "gt", "regex"):
            result = examine_triggers([eval_of(operator, value)])
            assert not result.triggers
            assert "levels deep" in str(result.problems[0])


def test_decode_gives_triggers_and_problems() -> None:
    triggers, problems = decode([raw(ONLINE), 5])
    assert [item.name for item in triggers] == ["t"]
    assert len(problems) == 1


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("sensor:door:Readings", ("sensor", "door", "Readings")),
        ("sensor:a:b:c:Readings", ("sensor", "a:b:c", "Readings")),
        ("rdk:component:sensor:door:Readings", ("sensor", "door", "Readings")),
        ("rdk:component:sensor:a:b:Readings", ("sensor", "a:b", "Readings")),
        ("rdk:a:b:Readings", ("rdk", "a:b", "Readings")),
        ("sensor:door", ("sensor", "", "door")),
        ("sensor", ("sensor", "", "")),
        ("", ("", "", "")),
    ],
)
def test_parts_of_a_capture_method(text: str, parts: tuple[str, str, str]) -> None:
    assert split_method(text) == parts


def test_several_secrets_sign_while_one_takes_the_place_of_another() -> None:
    assert len(signing_keys(f"{SECRET} whsec_{'A' * 32}")) == 2
    assert signing_keys("") == ()
    assert signing_keys(SECRET.rstrip("=")) == signing_keys(SECRET)
