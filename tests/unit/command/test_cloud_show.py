"""Display of the cloud's answers for users."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from click.testing import CliRunner

from command.cloud.configurations.config import config
from command.cloud.group import is_called
from command.cloud.show import chosen, fleet, history, in_state, parts_of, saves, with_health


def revision(number: int, rpm: Any, author: str = "guard") -> dict[str, Any]:
    attributes = {"max_rpm": rpm, "password": f"secret {number}"}
    motor = {"name": "a", "api": "rdk:component:motor", "model": "fake", "attributes": attributes}
    return {
        "revision": number,
        "saved": f"2026-01-0{number}T00:00:00+00:00",
        "author": author,
        "author_type": "api-key",
        "author_id": "k",
        "document": {"components": [motor]},
    }


def test_each_save_has_its_number_its_author_and_what_it_changed() -> None:
    result = saves([revision(3, 150), revision(2, 200), revision(1, 60, author="the\x1bmachine")])
    assert [item["revision"] for item in result] == [3, 2, 1]
    assert result[2]["changes"] is None, "what came before is not known"
    assert "document" not in result[0]
    lines = list(history(result))
    heads = [line for line in lines if not line.startswith(" ")]
    assert [head.split("  ")[0] for head in heads] == ["3", "2", "1"]
    assert [head.split("  by ")[1] for head in heads] == ["guard", "guard", "the machine"]
    assert any("200 -> 150" in line for line in lines[1 : lines.index(heads[1])])
    assert any("60 -> 200" in line for line in lines[lines.index(heads[1]) : lines.index(heads[2])])
    assert lines[-1] == heads[2]
    assert "secret" not in "".join(lines)
    masked = [{**revision(2, 60), "document": {}}, {**revision(1, 60), "document": {}}]
    assert saves(masked)[0]["changes"] == ["(in secrets, which this key must not read)"]


def test_diff_refuses_wrong_combinations_of_arguments() -> None:
    for words, said in ((["-", "--to", "2"], "not with both"), ([], "give FILE"), (["--to", "0"], "range")):
        done = CliRunner().invoke(config, ["diff", "rover", *words], input="{}")
        assert done.exit_code == 2
        assert said in done.output


def test_the_fleet_table_shows_the_version_of_each_part() -> None:
    part = {"part_name": "rover-main", "part_id": "p", "is_main_part": True, "online_state": "ONLINE"}
    values = {**part, "part_id": "q", "viam_server_version": {"minor": "0.9.1"}}
    machines = [{"machine_name": name, "part_summaries": [first]} for name, first in (("a", part), ("b", values))]
    result = parts_of([{"location_name": "lab", "machine_summaries": machines}])
    assert [item.version for item in result] == ["", "0.9.1"]
    head, *_, last = fleet(result, datetime.now(UTC))
    assert "VERSION" in head
    assert "0.9.1" in last


def test_the_fleet_table_shows_problems_and_is_filtered_by_state_and_location() -> None:
    part = {"part_name": "main", "is_main_part": True, "online_state": "ONLINE"}
    machines = [{"machine_name": name, "part_summaries": [{**part, "part_id": name}]} for name in ("a", "b", "c", "d")]
    health = [
        {"part_id": name, "state": state, "problems": count, "rejected": why, "location_id": "7", "location": "lab"}
        for name, state, count, why in (
            ("a", "online", 0, ""),
            ("b", "degraded", 5, ""),
            ("c", "degraded", 0, "not JSON"),
            ("d", "awaiting", 0, ""),
        )
    ]
    parts = with_health(parts_of([{"location_name": "lab", "machine_summaries": machines}]), health)
    head, *rows = fleet(parts, datetime.now(UTC))
    assert head.split()[:5] == ["MACHINE", "PART", "STATE", "PROBLEMS", "SEEN"]
    column = slice(head.index("STATE"), head.index("SEEN"))
    assert [" ".join(row[column].split()) for row in rows] == [
        "online",
        "degraded 5",
        "degraded configuration rejected",
        "awaiting setup",
    ]
    assert [item.id for item in in_state(parts, "degraded", "")] == ["b", "c"]
    assert [item.id for item in in_state(parts, "", "7")] == ["a", "b", "c", "d"]
    assert in_state(parts, "online", "elsewhere") == []


def test_a_machine_is_chosen_by_its_name_however_its_letters_are_composed() -> None:
    part = {"part_name": "caf\u00e9-main", "part_id": "p", "is_main_part": True, "online_state": "ONLINE"}
    machines = [{"machine_name": "caf\u00e9", "part_summaries": [part]}]
    parts = parts_of([{"location_name": "lab", "machine_summaries": machines}])
    for name in ("caf\u00e9", "cafe\u0301", "lab/cafe\u0301", "cafe\u0301-main"):
        assert chosen(parts, name).id == "p"


def test_an_object_is_called_by_its_id_or_by_its_name_however_its_letters_are_composed() -> None:
    item = {"id": "7", "name": "caf\u00e9"}
    assert [is_called(item, text) for text in ("7", "caf\u00e9", "cafe\u0301", "cafe", "8")] == [True] * 3 + [False] * 2
