from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from command.machine import facts
from support.text import terminal

cells = st.text(max_size=12)


@given(st.lists(st.tuples(cells, cells, cells), max_size=6))
def test_columns_are_aligned_and_control_characters_are_removed(rows: list[tuple[str, str, str]]) -> None:
    lines = terminal.table(("A", "B", "END"), [(*row[:2], "|" + row[2]) for row in rows])
    assert len(lines) == len(rows) + 1
    starts = {terminal.width(line[: line.rindex("|") if line.count("|") == 1 else 0]) for line in lines[1:]}
    assert len(starts - {0}) <= 1
    assert all(ord(char) >= 32 and not 127 <= ord(char) < 160 for line in lines for char in line)


def test_only_the_state_column_is_colored_and_only_on_request() -> None:
    rows = [("left", "unhealthy", "it is ready")]
    assert "\x1b" not in "".join(terminal.table(("NAME", "STATE", "REASON"), rows))
    head, line = terminal.table(("NAME", "STATE", "REASON"), rows, colour=True)
    assert "\x1b" not in head
    assert line == "left  \x1b[31munhealthy\x1b[0m  it is ready"


def test_wide_letters_take_two_columns() -> None:
    assert terminal.table(("N", "S"), [("電", "x"), ("ab", "y")]) == ["N   S", "電  x", "ab  y"]


def resource(name: str, state: str = "ready", reason: str = "") -> facts.Resource:
    return facts.Resource(name, "rdk:component:motor", state, None, "", reason)


def machine(*resources: facts.Resource) -> facts.Machine:
    return facts.Machine("running", "", None, resources)


def test_changes_are_new_changed_and_removed_resources() -> None:
    before = machine(resource("a"), resource("b"), resource("c"))
    after = machine(resource("a"), resource("b", "unhealthy", "x"), resource("d"))
    got = {change.name: change.state for change in facts.changes(before, after)}
    assert got == {"b": "unhealthy", "d": "ready", "c": "removed"}
    assert [item.name for item in facts.changes(None, before)] == ["a", "b", "c"]
    assert facts.changes(before, before) == []


def test_states_are_read_from_numbers_and_from_names() -> None:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    name = {"namespace": "rdk", "type": "component", "subtype": "motor", "name": "left", "remote_path": ["arm"]}
    for state, running in ((5, 2), ("UNHEALTHY", "RUNNING")):
        got = facts.machine_of(
            {
                "state": running,
                "config": {"revision": "r1", "last_updated": when},
                "resources": [{"name": name, "state": state, "last_updated": when, "error": "why"}],
            }
        )
        assert got.state == "running"
        assert got.resources == (facts.Resource("arm:left", "rdk:component:motor", "unhealthy", when, "", "why"),)
    text = facts.machine_of({"resources": [{"name": "rdk:component:motor/left", "state": "READY"}]})
    assert text.resources[0].full == "rdk:component:motor/left"
    assert facts.counts(got.resources) == "1 unhealthy"
    assert facts.counts(()) == "no resources"


def test_a_head_is_never_coloured_even_if_it_names_a_state() -> None:
    assert terminal.table(("ready", "x"), [("left", "y")], colour=True)[0] == "ready  x"
