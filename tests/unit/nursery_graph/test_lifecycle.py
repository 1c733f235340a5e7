"""The transition table is complete, documented, and has no unused transitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from nursery_graph.lifecycle import RUNNING, TABLE, USABLE, WAITING, Event, Phase, State, mermaid, step

DOCUMENT = Path(__file__).parents[3] / "docs" / "design" / "nursery_graph.md"


def reachable(start: Phase) -> set[Phase]:
    result, todo = {start}, [start]
    while todo:
        phase = todo.pop()
        for (before, _), after in TABLE.items():
            if before is phase and after not in result:
                result.add(after)
                todo.append(after)
    return result


def test_every_phase_can_be_reached_and_every_one_can_end() -> None:
    assert reachable(Phase.IDLE) == set(Phase)
    for phase in Phase:
        assert Phase.GONE in reachable(phase)


def test_every_event_occurs() -> None:
    assert {event for _, event in TABLE} == set(Event)


def test_the_states_are_those_of_the_wire() -> None:
    assert {state.value for state in State} == {"unconfigured", "configuring", "ready", "unhealthy", "removing"}
    assert {phase.state for phase in Phase} == {*State, None}


def test_running_nodes_can_be_stopped_and_waiting_nodes_retried() -> None:
    for phase in (*RUNNING, Phase.FAILING):
        assert step(phase, Event.STOP) is Phase.STOPPING
    for phase in WAITING:
        assert step(phase, Event.RETRY) is Phase.IDLE
    assert USABLE < RUNNING


def test_nothing_starts_but_from_idle() -> None:
    assert [before for before, event in TABLE if event is Event.START] == [Phase.IDLE]


@pytest.mark.parametrize("phase", Phase)
def test_other_pairs_are_refused_by_name(phase: Phase) -> None:
    for event in Event:
        if (phase, event) not in TABLE:
            with pytest.raises(LookupError, match=f"{phase.name} on {event.name}"):
                step(phase, event)


def test_the_diagram_in_the_documentation_is_up_to_date() -> None:
    assert f"```mermaid\n{mermaid()}```" in DOCUMENT.read_text(encoding="utf-8")
