"""Differences between documents: complete, symmetric, and without secrets."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from schema.diff import HIDDEN, Difference, difference
from schema.document.machine import MachineDocument, decode_document, decode_document_value


def document(**parts: Any) -> MachineDocument:
    decoded = decode_document_value(parts)
    assert decoded.problems == ()
    assert decoded.document is not None
    return decoded.document


def motor(name: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "type": "motor", "model": "fake", "attributes": attributes}


def test_equal_documents_do_not_differ() -> None:
    parts: dict[str, Any] = {"components": [motor("a", x=1)], "network": {"bind_address": ":1"}}
    changes = difference(document(**parts), document(**parts))
    assert changes == Difference()
    assert not changes
    assert changes.lines == ()


def test_added_removed_changed() -> None:
    old = document(components=[motor("left", max_rpm=60, pins={"a": "1"}), motor("gone", x=1)], debug=True)
    new = document(
        components=[motor("new"), motor("left", max_rpm=90, pins={"b": "1"})],
        modules=[{"name": "m", "executable_path": "x"}],
        network={"sessions": {"heartbeat_window": "5s"}},
    )
    assert difference(old, new).lines == (
        "- components.gone",
        "+ components.new",
        "+ modules.m",
        "~ components.left.attributes.max_rpm: 60 -> 90",
        '~ components.left.attributes.pins.a: "1" -> (none)',
        '~ components.left.attributes.pins.b: (none) -> "1"',
        "~ network.sessions.heartbeat_window: (none) -> 5.0",
        "~ debug: true -> false",
    )


def test_a_renamed_entry_is_hinted_at() -> None:
    changes = difference(
        document(components=[motor("a", x=1), motor("b")]), document(components=[motor("c", x=1), motor("b")])
    )
    assert changes.renamed == (("components.a", "components.c"),)
    assert (changes.removed, changes.added) == (("components.a",), ("components.c",))
    assert changes.lines[0] == "> components.a was renamed to c"


def test_order_does_not_matter() -> None:
    a, b = motor("a"), motor("b")
    assert not difference(document(components=[a, b]), document(components=[b, a]))


def test_a_new_revision_alone_is_reported_but_changes_nothing() -> None:
    changes = difference(
        document(revision="1", components=[motor("a")]), document(revision="2", components=[motor("a")])
    )
    assert not changes
    assert changes.revision == ("1", "2")
    assert str(changes) == "# revision: 1 -> 2"


def test_json_distinguishes_what_python_does_not() -> None:
    changes = difference(
        document(components=[motor("a", x=1, y=[0])]), document(components=[motor("a", x=True, y=[False])])
    )
    assert changes.changed[0].lines == (
        "components.a.attributes.x: 1 -> true",
        "components.a.attributes.y.0: 0 -> false",
    )
    changes = difference(document(components=[motor("a", x=None)]), document(components=[motor("a")]))
    assert changes.changed[0].lines == ("components.a.attributes.x: null -> (none)",)


def test_one_short_name_in_two_apis() -> None:
    motion, data = {"api": "rdk:service:motion"}, {"api": "rdk:service:data_manager"}
    changes = difference(
        document(services=[motion, data]), document(services=[motion, {**data, "attributes": {"x": 1}}])
    )
    assert changes.lines == ("~ services.rdk:service:data_manager/builtin.attributes.x: (none) -> 1",)


def test_secrets_say_only_that_they_changed() -> None:
    old = document(
        components=[motor("a", password="one", url="http://u:one@h")],
        auth={"handlers": [{"type": "api-key", "config": {"id": "one"}}]},
    )
    new = document(
        components=[motor("a", password="two", url="http://u:two@h")],
        auth={"handlers": [{"type": "api-key", "config": {"id": "two"}}]},
    )
    assert difference(old, new).lines == (
        f"~ components.a.attributes.password: {HIDDEN}",
        f"~ components.a.attributes.url: {HIDDEN}",
        f"~ auth.handlers.0.config.id: {HIDDEN}",
    )
    assert '"one" -> "two"' in str(difference(old, new, reveal=True))


SECRET = "hunter2hunter2"
scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["x", "y", ""])
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=2) | st.dictionaries(st.sampled_from("ab"), v, max_size=2), max_leaves=5
)
secrets = st.recursive(
    scalars | st.sampled_from([f"{SECRET}1", f"{SECRET}2"]),
    lambda v: st.lists(v, max_size=2) | st.dictionaries(st.sampled_from("ab"), v, max_size=2),
    max_leaves=5,
)
attributes = st.fixed_dictionaries({}, optional={"x": values, "y": values, "api_key": secrets, "psk": secrets})
components = st.dictionaries(st.sampled_from(["a", "b", "c"]), attributes, max_size=3).map(
    lambda entries: [motor(name, **its) for name, its in entries.items()]
)
documents = st.fixed_dictionaries(
    {},
    optional={
        "components": components,
        "revision": st.sampled_from(["1", "2"]),
        "debug": st.booleans(),
        "agent": attributes,
        "cloud": st.sampled_from([f"{SECRET}1", f"{SECRET}2"]).map(lambda secret: {"id": "p", "secret": secret}),
        "log": st.lists(st.just({"pattern": "a", "level": "info"}), max_size=2),
    },
).map(lambda parts: document(**parts))


@given(documents, documents)
def test_no_secret_is_ever_shown(old: MachineDocument, new: MachineDocument) -> None:
    assert SECRET not in repr(difference(old, new))


@given(documents, documents)
def test_there_is_a_difference_if_and_only_if_the_documents_mean_something_else(
    old: MachineDocument, new: MachineDocument
) -> None:
    def meaning(item: MachineDocument) -> str:
        named = {str(entry.name): json.dumps(entry.attributes, sort_keys=True) for entry in item.components}
        return json.dumps(
            [named, item.debug, item.agent, repr(item.log), item.cloud and item.cloud.secret], sort_keys=True
        )

    assert bool(difference(old, new)) == (meaning(old) != meaning(new))


@given(documents, documents)
def test_the_way_back_is_the_mirror_image(old: MachineDocument, new: MachineDocument) -> None:
    there, back = difference(old, new), difference(new, old)
    assert set(there.added) == set(back.removed)
    assert set(there.removed) == set(back.added)
    assert {change.path for change in there.changed} == {change.path for change in back.changed}
    assert (there.revision or ())[::-1] == (back.revision or ())


@given(documents, documents)
def test_added_entries_are_in_the_new_document_and_changed_ones_in_both(
    old: MachineDocument, new: MachineDocument
) -> None:
    changes = difference(old, new)
    names = [{f"components.{entry.name.name}" for entry in item.components} for item in (old, new)]
    assert {path for path in changes.added if path.startswith("components.")} == names[1] - names[0]
    assert {path for path in changes.removed if path.startswith("components.")} == names[0] - names[1]
    assert {c.path for c in changes.changed if c.path.startswith("components.")} <= names[0] & names[1]
    assert all(change.lines for change in changes.changed)


SECRET = "hunter2hunter2"
planted = st.sampled_from([SECRET, [SECRET], {"deep": [SECRET]}, f"x {SECRET}"])
holders = st.recursive(
    st.dictionaries(st.sampled_from(["secret", "api_key", "MY_TOKEN", "wifiPassword", "key2"]), planted, min_size=1)
    | st.builds("ftp://me:{}@host/x".format, st.just(SECRET))
    | st.builds("https://host/?api_key={}".format, st.just(SECRET))
    | st.builds(lambda value: [{"name": "API_KEY", "value": value}], planted)
    | st.builds(lambda value: {"env": {"ANYTHING": value}}, planted),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=3),
    max_leaves=6,
)


def with_secrets(tree: Any) -> dict[str, Any]:
    names = {"name": "x", "api": "rdk:component:motor", "model": "fake"}
    return {
        "components": [
            {**names, "attributes": {"tree": tree}, "service_configs": [{"type": "t", "attributes": {"t": tree}}]}
        ],
        "modules": [
            {
                "name": "m",
                "executable_path": "/m",
                "env": {"MY_TOKEN": SECRET, "URL": f"http://a:{SECRET}@b", "X": SECRET},
            }
        ],
        "jobs": [{"name": "j", "schedule": "1s", "resource": "x", "method": "M", "command": {"t": tree}}],
        "agent": {"tree": tree},
        "triggers": [tree, {"notifications": [tree]}],
    }


@given(holders, holders)
def test_no_planted_secret_is_in_a_difference(item: Any, other: Any) -> None:
    documents = [
        decode_document(json.dumps(part).encode()).document for part in (with_secrets(item), with_secrets(other), {})
    ]
    changed = {"modules": [{"name": "m", "executable_path": "/m", "env": {"MY_TOKEN": "x", "URL": "y"}}]}
    documents.append(decode_document(json.dumps(changed).encode()).document)
    for before in documents:
        for after in documents:
            assert before is not None
            assert after is not None
            assert SECRET not in str(difference(before, after))
        assert SECRET not in repr(before)
