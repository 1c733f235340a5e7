"""Triggers as forms: what a form becomes, which triggers have one, and where they are put in a configuration."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.editing.triggering import EMPTY, FIELDS, entry_of, form_of, with_trigger
from schema.errors import ErrorKind, MachineError
from triggers.document import CONDITIONAL, DATA, LOGS, OFFLINE, ONLINE

HOT = {
    "name": "hot",
    "event": {
        "type": CONDITIONAL,
        "conditional": {
            "data_capture_method": "sensor:oven:Readings",
            "conditions": {"evals": [{"operator": "gt", "value": {"celsius": 30}}]},
        },
    },
    "notifications": [{"type": "email", "value": "ann@example.com", "seconds_between_notifications": 60.0}],
}
FORM = {
    **EMPTY,
    "name": "hot", "method": "sensor:oven:Readings", "field": "celsius", "value": "30", "to": "email",
    "address": "ann@example.com", "pause": "60",
}  # fmt: skip
GONE = {"name": "gone", "event": {"type": OFFLINE}, "notifications": [{"type": "webhook", "value": "https://x.test/"}]}


def test_a_form_becomes_an_entry_and_an_entry_the_form() -> None:
    assert entry_of(FORM) == HOT
    assert form_of({"triggers": [GONE, HOT]}, "hot") == FORM


@pytest.mark.parametrize(
    ("changed", "value"),
    [
        ({"value": "30.5"}, 30.5),
        ({"value": "true", "operator": "eq"}, True),
        ({"value": "on", "operator": "eq"}, "on"),
        ({"value": '"30"', "operator": "eq"}, "30"),
        ({"value": "30", "operator": "regex"}, "30"),
    ],
)
def test_values_are_json_or_text(changed: dict[str, str], value: Any) -> None:
    entry = entry_of({**FORM, **changed})
    (comparison,) = entry["event"]["conditional"]["conditions"]["evals"]
    assert comparison["value"] == {"celsius": value}
    assert entry_of(form_of({"triggers": [entry]}, "hot")) == entry


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": ""}, "^Name: is empty"),
        ({"event": "odd"}, "^When: "),
        ({"method": "oven"}, "^Readings of: .*sensor:door:Readings"),
        ({"operator": "above"}, "^Value: "),
        ({"operator": "regex", "value": "("}, "^Value: "),
        ({"address": "ann"}, "^To: "),
        ({"to": "webhook", "address": "ftp://x/"}, "^To: the scheme"),
        ({"pause": "soon"}, "not a number of seconds"),
        ({"pause": "-1"}, "^Pause: "),
    ],
)
def test_mistakes_are_named_by_their_labels(changed: dict[str, str], words: str) -> None:
    with pytest.raises(MachineError, match=words) as caught:
        entry_of({**FORM, **changed})
    assert caught.value.kind is ErrorKind.INVALID


@pytest.mark.parametrize(
    "change",
    [
        {"notes": "Ask Ann."},
        {"notifications": [*HOT["notifications"], *GONE["notifications"]]},
        {"notifications": [{**GONE["notifications"][0], "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}]},
        {"event": {"type": LOGS, "log_levels": ["error", "warn"]}},
        {"event": {"type": DATA, "data_ingested": {"data_types": ["binary", "tabular"]}}},
        {"event": 5},
        {"notifications": "x"},
    ],
)
def test_triggers_with_more_than_a_form_have_no_form(change: dict[str, Any]) -> None:
    with pytest.raises(MachineError, match="more than the form can show") as caught:
        form_of({"triggers": [{**HOT, **change}]}, "hot")
    assert caught.value.kind is ErrorKind.PRECONDITION


def test_triggers_are_added_and_replaced_in_their_places() -> None:
    document = {"components": [], "triggers": [GONE, HOT]}
    new = {**GONE, "name": "new"}
    assert with_trigger({}, new) == {"triggers": [new]}
    assert with_trigger(document, new)["triggers"] == [GONE, HOT, new]
    assert with_trigger(document, new, "gone") == {"components": [], "triggers": [new, HOT]}
    assert document["triggers"] == [GONE, HOT]


@pytest.mark.parametrize(
    ("document", "old", "kind"),
    [
        ({"triggers": [HOT]}, "", ErrorKind.EXISTS),
        ({"triggers": [GONE, HOT]}, "gone", ErrorKind.EXISTS),
        ({"triggers": [GONE]}, "cold", ErrorKind.NOT_FOUND),
        ({"triggers": {}, "x": 1}, "cold", ErrorKind.NOT_FOUND),
        ({"triggers": {"a": 1}}, "", ErrorKind.PRECONDITION),
    ],
)
def test_nothing_is_overwritten(document: dict[str, Any], old: str, kind: ErrorKind) -> None:
    with pytest.raises(MachineError) as caught:
        with_trigger(document, HOT, old)
    assert caught.value.kind is kind


@given(
    st.fixed_dictionaries(
        {field: st.text(max_size=12) for field in FIELDS}
        | {
            "event": st.sampled_from([CONDITIONAL, DATA, LOGS, ONLINE]),
            "value": st.one_of(st.text(max_size=8), st.integers().map(str), st.floats().map(str)),
            "address": st.just("https://x.test/"),
            "method": st.just("sensor:a:Readings"),
        }
    )
)
def test_any_form_is_refused_or_comes_back(form: dict[str, str]) -> None:
    try:
        entry = entry_of(form)
    except MachineError:
        return
    assert entry_of(form_of({"triggers": [entry]}, entry["name"])) == entry
